//! `deskhand://` addresses and second starts: both come from strangers, so both only ever open the window, and an address
//! can end a sign-in that is waiting for it. Neither connects, approves or changes anything.

use executor::front::Front;
use tauri::{AppHandle, Manager};
use tracing::info;
use url::Url;

use crate::windows;

/// Another process of this app was started and has ended.
pub(crate) fn second_start(app: &AppHandle, arguments: &[String]) {
    // An address comes through the deep-link plugin, which reads the same arguments.
    let address = arguments.iter().skip(1).any(|argument| argument.starts_with("deskhand:"));
    if !address {
        windows::open_main(app);
    }
}

/// The system handed an address over.
pub(crate) fn arrived(app: &AppHandle, address: &Url) {
    match kind(address) {
        Kind::Callback => {
            let front = app.try_state::<Front>().map(|front| front.inner().clone());
            if front.is_some_and(|front| front.deep_link(address.as_str())) {
                windows::open_main(app);
            } else {
                info!("an address to end a sign-in came, and none was waiting for it");
            }
        }
        Kind::Open => windows::open_main(app),
        // Its text may be anything, also a secret of somebody's: it is not logged.
        Kind::Unknown => info!("an unknown deskhand:// address was ignored"),
    }
}

#[derive(Debug, PartialEq)]
enum Kind {
    Callback,
    Open,
    Unknown,
}

fn kind(address: &Url) -> Kind {
    let plain = address.scheme() == "deskhand"
        && address.username().is_empty()
        && address.password().is_none()
        && address.port().is_none();
    match (address.host_str(), address.path()) {
        (Some("oauth"), "/callback") if plain => Kind::Callback,
        (Some("open"), "" | "/") if plain && address.query().is_none() => Kind::Open,
        (Some(_) | None, _) => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_callback_and_open_exist() {
        let of = |address: &str| kind(&Url::parse(address).unwrap());
        assert_eq!(of("deskhand://oauth/callback?code=a&state=b"), Kind::Callback);
        assert_eq!(of("deskhand://open"), Kind::Open);
        for other in [
            "deskhand://connect",
            "deskhand://open?then=connect",
            "deskhand://open/settings",
            "deskhand://oauth/callback/../x",
            "deskhand://user@oauth/callback",
            "deskhand://oauth:1/callback",
            "deskhand:oauth/callback",
            "https://oauth/callback",
        ] {
            assert_eq!(of(other), Kind::Unknown, "{other}");
        }
    }
}
