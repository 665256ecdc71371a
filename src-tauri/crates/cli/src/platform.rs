//! `deskhand platform`: a platform of one's own.

use ::platform::{Database, Platform, PlatformError, PlatformOptions};

use crate::args;
use crate::context::block_on;
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;
use crate::run::Signals;

pub(crate) fn platform(options: &args::Platform) -> Outcome {
    let database = options.database.clone().map_or(Database::Memory, Database::File);
    let forgets = database == Database::Memory;
    let start = PlatformOptions {
        listen: options.listen,
        database,
        public_url: options.public_url.clone(),
        ..PlatformOptions::default()
    };
    block_on(async {
        let mut signals = Signals::new()?;
        let platform = Platform::start(start).await.map_err(not_started)?;
        if forgets {
            output::note("without --database everything is forgotten when this ends");
        }
        output::line(format_args!("url       {}", platform.url()))?;
        if let Some(user) = platform.add_first_user(&options.user).await.map_err(failed(Code::Setup))? {
            output::line(format_args!("user      {}\npassword  {}", user.name, user.password))?;
            output::note("the password is shown this once");
        }
        output::note(format_args!("a machine joins with: deskhand login --platform-url {}", platform.url()));
        signals.end().await;
        platform.stop().await;
        Ok(())
    })
}

fn not_started(error: PlatformError) -> Failure {
    match error {
        PlatformError::Listen { .. } => {
            Failure::new(Code::Setup, format!("{error}; choose another address or port with --listen"))
        }
        PlatformError::Option { .. } => Failure::new(Code::Usage, error),
        other => Failure::new(Code::Setup, other),
    }
}
