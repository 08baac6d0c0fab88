//! The `tollgate` binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate::cli::main()
}
