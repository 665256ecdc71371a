//! Capabilities: what the person switched on and a probe found to work.

macro_rules! names {
    ($(#[$doc:meta])* $enum:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $enum {
            $($(#[$vdoc])* #[serde(rename = $name)] $variant,)*
        }

        impl $enum {
            /// Every one of them, in the order of the contract.
            pub const ALL: &[$enum] = &[$($enum::$variant),*];

            /// The name on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            /// The one of this name, if there is one.
            #[must_use]
            pub fn named(name: &str) -> Option<$enum> {
                match name { $($name => Some($enum::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use names;

names!(
    /// What an executor offers and a platform grants.
    Capability {
        /// Files in the session's folder. Always there.
        Files = "files",
        /// Folder browsing; on the control connection only.
        DirectoryBrowse = "directory_browse",
        /// Commands.
        Shell = "shell",
        /// Screen, input, windows, apps, clipboard.
        ComputerUse = "computer_use",
        /// A model server on this machine.
        LocalLlm = "local_llm",
        /// Workflow recording.
        Recording = "recording",
        /// Serial ports.
        HardwareSerial = "hardware_serial",
        /// USB devices.
        HardwareUsb = "hardware_usb",
        /// GPIO pins.
        HardwareGpio = "hardware_gpio",
    }
);

names!(
    /// Coarse groups of computer-use features.
    Coarse {
        /// Pictures of the screen.
        Screenshot = "screenshot",
        /// Mouse and keyboard.
        Input = "input",
        /// Windows.
        Windows = "windows",
        /// Applications.
        Apps = "apps",
        /// Clipboard.
        Clipboard = "clipboard",
        /// Permissions and displays.
        Permissions = "permissions",
    }
);
