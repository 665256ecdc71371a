//! The command line. Its help is the product's manual: it says what happens, what the default is, and how it ends.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

const AFTER_HELP: &str = "\
Configuration: config.toml in the configuration folder, DESKHAND_* variables over it, flags over those. A key nobody \
knows is an error that names the nearest one.

Exit codes:
   0  done
   1  not done; the message says why
  64  the command line, or what was given to it, cannot be used
  65  an audit log does not verify
  69  the platform cannot be reached, or deskhand is not running
  77  signing in is needed: deskhand login
  78  the configuration, a folder, a key or a permission has to be put right first

Environment:
  DESKHAND_CONFIG_DIR, DESKHAND_STATE_DIR  as --config-dir and --state-dir
  DESKHAND_LOG                             what is logged to standard error: error, warn, info, debug, trace
  DESKHAND_KEYCHAIN_PASSPHRASE             opens the encrypted file of secrets, where there is no keychain
  DESKHAND_KEYCHAIN_PASSPHRASE_FILE        a file with that passphrase";

/// Lets a hosted AI agent work in folders of this computer: those you choose, with what you allow, as long as you want.
#[derive(Debug, Parser)]
#[command(name = "deskhand", version, after_long_help = AFTER_HELP, after_help = "See --help for exit codes and variables.")]
#[command(
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every subcommand.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Folder of config.toml, instead of the system's own place for it
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Folder of everything else (secrets, audit log, local socket), instead of the system's own places
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The platform, over `platform_url` of the configuration
    #[arg(long, global = true, value_name = "URL", help_heading = "Global options")]
    pub(crate) platform_url: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run here, in the foreground, until ended (Ctrl-C, SIGTERM)
    ///
    /// Connects at once, unless `stop` or `disconnect` was said since the last `connect`. Asks for consent in this terminal
    /// where there is one; without one, what no rule of the configuration allows is denied. SIGHUP reads the configuration
    /// again. Exits 77 when nobody is signed in, 78 when another deskhand runs with the same state folder.
    Run,
    /// Sign in to the platform, with a browser
    ///
    /// With --platform-url, to that one, which is then written to config.toml as `platform_url`, for the other commands.
    Login(Login),
    /// Sign out: revoke the tokens at the platform and forget them
    Logout,
    /// Connect the running deskhand, and let it connect when it starts
    ///
    /// Ends what `stop` or `disconnect` said, for the next one when none runs. Exits 69 when none runs and nothing was said.
    Connect,
    /// Close all connections, gently, and stay off until `connect`
    Disconnect,
    /// Keep the connection, refuse every request until `resume`
    Pause,
    /// End a pause
    Resume {
        /// Only this session, which was paused after too many denials; without it, everything
        session_id: Option<String>,
    },
    /// The kill switch: cut every connection and end every command, now; stay off until `connect`
    ///
    /// Works while deskhand is busy or hangs; when it does not answer at all its process is ended. Also said while none
    /// runs, it keeps the next one off.
    Stop,
    /// What the running deskhand does; exits 69 when none runs
    Status(Status),
    /// Check this installation, and say what to do about what is wrong
    ///
    /// Folders, configuration, keychain, sign-in, audit log, each step of the way to the platform, clock, capabilities. Sends no
    /// token and changes no setting. Exits 0, or 78 when something fails.
    Doctor {
        /// As JSON: {"ok", "checks": [{"name", "status": "ok"|"warn"|"fail"|"skipped", "detail", "advice"}]}
        #[arg(long)]
        json: bool,
    },
    /// The folders that an agent may be given
    Roots {
        #[command(subcommand)]
        command: Roots,
    },
    /// The audit log: one signed line for everything that was asked and done
    Audit {
        #[command(subcommand)]
        command: Audit,
    },
    /// Have `deskhand run` started when you log in
    Service {
        #[command(subcommand)]
        command: Service,
    },
    /// Serve a platform of your own: sign-in, relay and tools for your agent and your machines
    ///
    /// Prints its address and, the first time, a user with a password that is shown once. Runs until ended.
    #[cfg(feature = "platform")]
    Platform(Platform),
    /// Watch it work: a platform, an executor and an agent that mends a small project, in a temporary folder
    ///
    /// Signs in, connects, gives the agent a folder, shows what it may and may not do, the log of it, and the kill switch.
    /// Needs no display, keychain or account, and has nothing to do with your own installation. Checks every step: exits 0
    /// when all of them did what they promise, and leaves no process and no file behind.
    #[cfg(feature = "platform")]
    Demo(Demo),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// Show an address to open in a browser anywhere, and take the address that browser ends on
    #[arg(long, conflicts_with = "with_token")]
    pub(crate) no_browser: bool,
    /// Read {"access_token", "refresh_token", "expires_in"} from standard input, for a machine without any browser
    #[arg(long)]
    pub(crate) with_token: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// As JSON; with --watch one object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on with everything that happens, until it ends or Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Roots {
    /// Share a folder, and all that is in it
    Add {
        /// The folder; must exist
        folder: PathBuf,
    },
    /// Share a folder no longer
    Remove {
        /// The folder, as `list` shows it
        folder: PathBuf,
    },
    /// Show the shared folders, one a line
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Show the last records, oldest first: number, beginning of the hmac, operation, how it went, what it was about
    Tail {
        /// How many
        #[arg(short = 'n', long, default_value_t = 10, value_name = "COUNT")]
        lines: usize,
        /// As they are in the log: one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show the record with a number, as it is in the log (JSON)
    Show {
        /// Its `seq`
        seq: u64,
        /// A log file, instead of the one that is being written
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Verify one file: every record, and the chain between them. Exits 65 at the first bad line
    Verify {
        /// A log file or an export (.zip), instead of the file that is being written
        file: Option<PathBuf>,
        /// `hmac` of the last record you know of: it must be there, so that a cut end shows
        #[arg(long, value_name = "HMAC")]
        last: Option<String>,
    },
    /// Verify all files and that none is missing. Exits 65 when something is wrong
    VerifyAll,
    /// Close the file that is being written and begin the next
    Rotate,
    /// Delete closed files; the log keeps a record of it
    Prune {
        /// Only files closed longer ago than this: 90d, 12h, 2w
        #[arg(long, value_name = "AGE", value_parser = age)]
        older_than: Duration,
    },
    /// Write all files and a signed list of them into a zip
    Export {
        /// The zip; must not exist yet
        file: PathBuf,
    },
    /// The key that the log is signed with
    Key {
        /// Show it, as 64 hexadecimal digits. Who has it can forge the log
        #[arg(long, required = true)]
        show: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// Install and start it (systemd user unit, launch agent, scheduled task)
    Install {
        /// A file with the passphrase of the encrypted file of secrets, for a machine without a keychain (systemd only)
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
    },
    /// Stop and remove it
    Uninstall,
    /// Whether it is installed and runs; exits 69 when not
    Status,
}

/// `deskhand platform`
#[cfg(feature = "platform")]
#[derive(Debug, clap::Args)]
pub(crate) struct Platform {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8750", value_name = "ADDRESS:PORT")]
    pub(crate) listen: std::net::SocketAddr,
    /// SQLite file to keep state in, for one platform at a time; without it, everything is forgotten at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) database: Option<PathBuf>,
    /// How browsers and machines reach it, where that is not the address it listens on (behind a proxy that ends TLS)
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<url::Url>,
    /// Name of the first user
    #[arg(long, default_value = "admin", value_name = "NAME", value_parser = user_name)]
    pub(crate) user: String,
}

/// `deskhand demo`
#[cfg(feature = "platform")]
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Leave platform and executor running at the end, until Ctrl-C, and say how to reach them
    #[arg(long)]
    pub(crate) keep: bool,
}

/// What the platform takes as a name.
#[cfg(feature = "platform")]
fn user_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 128 || text.chars().any(char::is_control) {
        return Err("a name has 1 to 128 bytes and no control characters".to_owned());
    }
    Ok(text.to_owned())
}

/// `90d`: a whole number and one of s, m, h, d, w.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no age: write a number and s, m, h, d or w, such as 90d");
    let (at, unit) = text.char_indices().next_back().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn ages_are_numbers_with_a_unit() {
        assert_eq!(age("90d"), Ok(Duration::from_secs(90 * 86_400)));
        assert_eq!(age("0s"), Ok(Duration::ZERO));
        for wrong in ["", "d", "90", "-1d", "1.5h", "99999999999999999999d", "9999999999999999999w", "1é"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
