# Two stages: the first builds with the project's own lock file, the second holds the binary alone.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY src src
COPY benches benches
COPY config config
RUN cargo build --release --locked --bin tollgate

FROM debian:bookworm-slim
# A number and not a name, so that an orchestrator can see that it is not root.
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin tollgate
COPY --from=build /src/target/release/tollgate /usr/local/bin/tollgate
COPY config/single-node.toml /etc/tollgate/tollgate.toml
USER 10001
# The links of the file above; mount another over it. Its admin interface listens on loopback alone:
# give it another address there to scrape it from outside.
EXPOSE 8583 8584
# The binary is process 1 itself, so SIGTERM arrives at it and starts the ordered shutdown. Give it
# grace + deadline + 1 s before SIGKILL.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/tollgate"]
CMD ["run", "--config", "/etc/tollgate/tollgate.toml"]
