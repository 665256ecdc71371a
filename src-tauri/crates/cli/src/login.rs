//! `deskhand login` and `logout`

use std::env;
use std::io::{self, Read as _};

use executor::config::{self, Config, EditError, Overrides, Redirect};
use executor::oauth::{self, LoggedOut, OAuthError};
use tokio::io::BufReader;
use url::Url;
use zeroize::Zeroizing;

use crate::args::Login;
use crate::context::{Context, block_on};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;

/// A token response is a few kilobytes.
const LONGEST_TOKEN: u64 = 64 * 1024;

pub(crate) fn login(context: &Context, options: &Login) -> Outcome {
    let loaded = context.load()?;
    let config = context.oauth(&loaded)?;
    // Read before the keychain is opened: that may ask to be unlocked, which nobody should have to do for a typing error.
    let token = options.with_token.then(read_token).transpose()?;
    let vault = context.vault()?;
    // A program cannot be handed a deep link; the address the browser ends on can be pasted.
    let pasting = options.no_browser || loaded.config.oauth.redirect == Redirect::DeepLink;
    let signed_in = block_on(async {
        Ok(match token {
            Some(token) => oauth::login_with_token(&config, &vault, &token).await,
            None if pasting => {
                let input = BufReader::new(tokio::io::stdin());
                oauth::login_pasting(&config, &vault, show_address, input, output::note).await
            }
            None => oauth::login(&config, &vault, open).await,
        })
    })?;
    signed_in.map_err(failure)?;
    output::line(format_args!("signed in to {}", loaded.platform.host()))?;
    keep_platform(context, config.platform())
}

/// Has the other commands use the platform that `--platform-url` named: a sign-in is good for no other.
fn keep_platform(context: &Context, platform: &str) -> Outcome {
    if context.overrides.platform_url.is_none() {
        return Ok(());
    }
    let file = context.dirs.config_file();
    let configured = Config::load(&file, [], &Overrides::default()).map_err(failed(Code::Setup))?;
    if context.oauth(&configured)?.platform() != platform {
        config::set_platform(&file, platform).map_err(|error| not_kept(platform, &error))?;
        output::line(format_args!("platform_url in {} is now {platform}", file.display()))?;
    }
    warn_of_variable(context, platform)
}

fn not_kept(platform: &str, error: &EditError) -> Failure {
    let message = format!(
        "signed in, but that could not be made the platform of the other commands ({error}): give each of them \
         `--platform-url {platform}`, or set `platform_url = \"{platform}\"` in config.toml"
    );
    Failure::new(Code::Setup, message)
}

/// A variable of the environment goes over the file.
fn warn_of_variable(context: &Context, platform: &str) -> Outcome {
    let usual = Config::load(&context.dirs.config_file(), env::vars_os(), &Overrides::default());
    let usual = context.oauth(&usual.map_err(failed(Code::Setup))?)?;
    if usual.platform() != platform {
        output::note(format_args!(
            "deskhand: warning: the environment sets another platform, {}: take DESKHAND_PLATFORM_URL out of it, or give \
             each command `--platform-url {platform}`",
            usual.platform()
        ));
    }
    Ok(())
}

fn read_token() -> Outcome<Zeroizing<String>> {
    // Room for all of it: a string that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(LONGEST_TOKEN as usize + 1));
    match io::stdin().lock().take(LONGEST_TOKEN + 1).read_to_string(&mut text) {
        Ok(read) if read as u64 > LONGEST_TOKEN => Err(Failure::new(
            Code::Usage,
            format!("what was given is over {LONGEST_TOKEN} bytes, and so no token"),
        )),
        Ok(0) => Err(Failure::new(
            Code::Usage,
            "nothing was given on standard input; it takes {\"access_token\", \"refresh_token\", \"expires_in\"}",
        )),
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::new(Code::Usage, format!("standard input cannot be read: {error}"))),
    }
}

fn show_address(url: &Url) {
    output::note(format_args!(
        "Open this address in a browser on any computer and sign in:\n\n  {url}\n\nIf the browser then ends on an address it \
         cannot show, copy that address and paste it here:"
    ));
}

fn open(url: &Url) {
    match oauth::open_in_browser(url) {
        Ok(()) => output::note(format_args!("Sign in in the browser. If none opens, go to:\n\n  {url}\n")),
        Err(error) => output::note(format_args!(
            "No browser can be opened here ({error}). On this computer, go to:\n\n  {url}\n\nFor a browser on another \
             computer: deskhand login --no-browser"
        )),
    }
}

pub(crate) fn logout(context: &Context) -> Outcome {
    let loaded = context.load()?;
    let config = context.oauth(&loaded)?;
    let vault = context.vault()?;
    let outcome = block_on(async { Ok(oauth::log_out(&config, &vault).await) })?.map_err(failure)?;
    match outcome {
        LoggedOut::Revoked => output::line("signed out"),
        LoggedOut::WasSignedOut => output::line("nobody was signed in"),
        LoggedOut::Refused(why) => output::line(format_args!(
            "signed out here; the platform would not revoke the tokens ({why}), they end by themselves"
        )),
    }
}

fn failure(error: OAuthError) -> Failure {
    let code = match &error {
        OAuthError::Unreachable(_) | OAuthError::NotRevoked(_) | OAuthError::BadAnswer(_) => {
            Code::Unavailable
        }
        OAuthError::MissingState
        | OAuthError::WrongState
        | OAuthError::BadCallback
        | OAuthError::Denied(_)
        | OAuthError::SecondCallback
        | OAuthError::TimedOut
        | OAuthError::Refused(_) => Code::SignIn,
        OAuthError::BadToken(_) => Code::Usage,
        OAuthError::BadBase(_) | OAuthError::NoPort | OAuthError::Listener(_) | OAuthError::Vault(_) => {
            Code::Setup
        }
    };
    Failure::new(code, error)
}
