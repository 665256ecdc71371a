//! Whether somebody can see a prompt: not while the screen is locked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the desktop says about its lock. Where it says nothing, prompts are shown, and run out as denied.
#[derive(Clone, Default)]
pub(crate) struct Presence {
    locked: Arc<AtomicBool>,
}

impl Presence {
    /// Whether somebody could see a prompt now.
    pub(crate) fn is_somebody_there(&self) -> bool {
        !self.locked.load(Ordering::Acquire)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::pin::pin;

    use executor::consent::Withdrawal;
    use executor::front::Front;
    use futures_util::StreamExt as _;
    use tracing::debug;
    use zbus::message::Type;
    use zbus::{Connection, MatchRule, MessageStream, Proxy};

    use super::{Ordering, Presence};

    impl Presence {
        /// Follows the desktop's lock until the app ends.
        pub(crate) async fn watch(self, front: Front) {
            let saver = async {
                if let Err(error) = self.follow_screen_saver(&front).await {
                    debug!(%error, "no screen saver is heard");
                }
            };
            let login = async {
                if let Err(error) = self.follow_login(&front).await {
                    debug!(%error, "the login manager is not heard");
                }
            };
            tokio::join!(saver, login);
        }

        fn set(&self, locked: bool, front: &Front) {
            self.locked.store(locked, Ordering::Release);
            if locked {
                // What was asked before the person went is not answered by whoever comes.
                front.executor().consent().withdraw_all(Withdrawal::NobodyThere);
            }
        }

        /// `ActiveChanged` of `org.freedesktop.ScreenSaver`, and of the desktops' own that are called alike. Any program of
        /// the person's can send it: to say "locked" is to have prompts denied, to say "unlocked" to show them to nobody.
        async fn follow_screen_saver(&self, front: &Front) -> zbus::Result<()> {
            let bus = Connection::session().await?;
            let rule = MatchRule::builder().msg_type(Type::Signal).member("ActiveChanged")?.build();
            let mut signals = MessageStream::for_match_rule(rule, &bus, None).await?;
            while let Some(signal) = signals.next().await {
                let signal = signal?;
                let of_saver = signal.header().interface().is_some_and(|name| name.ends_with(".ScreenSaver"));
                if let (true, Ok(active)) = (of_saver, signal.body().deserialize::<bool>()) {
                    self.set(active, front);
                }
            }
            Ok(())
        }

        /// `LockedHint` of the login session that this process is in.
        async fn follow_login(&self, front: &Front) -> zbus::Result<()> {
            const LOGIND: &str = "org.freedesktop.login1";
            let bus = Connection::system().await?;
            let manager =
                Proxy::new(&bus, LOGIND, "/org/freedesktop/login1", "org.freedesktop.login1.Manager").await?;
            let path: zbus::zvariant::OwnedObjectPath =
                manager.call("GetSessionByPID", &(std::process::id(),)).await?;
            let session = Proxy::new(&bus, LOGIND, path, "org.freedesktop.login1.Session").await?;
            let mut changes = pin!(session.receive_property_changed::<bool>("LockedHint").await);
            while let Some(change) = changes.next().await {
                self.set(change.get().await?, front);
            }
            Ok(())
        }
    }
}
