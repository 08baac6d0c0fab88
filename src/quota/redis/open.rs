//! A connection to a master that is open, and how it is asked.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};

/// A connection to a master.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) connection: MultiplexedConnection,
    /// The slot is still on its way to this server, which has to be told that we know.
    pub(super) asking: bool,
}

impl Open {
    /// Sends a command once.
    pub(super) async fn ask(&mut self, command: Cmd) -> RedisResult<Value> {
        if !self.asking {
            return command.query_async(&mut self.connection).await;
        }
        let mut both = redis::pipe();
        both.cmd("ASKING").ignore().add_command(command);
        let answer: RedisResult<(Value,)> = both.query_async(&mut self.connection).await;
        answer.map(|(answer,)| answer).map_err(first_of)
    }
}

/// The error that a server gave to one of several commands, as if there had been that one alone.
fn first_of(error: RedisError) -> RedisError {
    let first = error.clone().into_server_errors();
    let first = first.and_then(|errors| errors.first().map(|(_, error)| error.clone()));
    first.map_or(error, RedisError::from)
}

#[cfg(test)]
mod tests {
    use redis::{ErrorKind, FromRedisValue, ServerErrorKind};

    use super::*;

    #[test]
    fn an_error_amid_several_commands_is_what_it_is_alone() {
        let line = b"-MOVED 3999 10.0.0.2:7002\r\n";
        let alone = redis::parse_redis_value(line).unwrap().extract_error().unwrap_err();
        let error = first_of(alone.clone());
        assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::Moved));
        assert_eq!(error.redirect_node(), alone.redirect_node());
        // What is no server's word stays what it is.
        let other = u8::from_redis_value(Value::Nil).unwrap_err();
        assert_eq!(first_of(other.into()).kind(), ErrorKind::Parse);
    }
}
