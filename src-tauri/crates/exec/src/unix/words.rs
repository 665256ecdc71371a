//! A command as `execve` takes it.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use crate::error::ExecError;
use crate::sys::Launch;

/// The program, its arguments and its environment, as `execve` takes them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
}

impl Words {
    pub(crate) fn of(launch: &Launch) -> Result<Words, ExecError> {
        let word = |word: &OsStr| {
            CString::new(word.as_bytes()).map_err(|_| ExecError::BadSpec("the command contains a NUL"))
        };
        let variable = |(name, value): &(_, _)| {
            let mut text = std::ffi::OsString::clone(name);
            text.push("=");
            text.push::<&std::ffi::OsString>(value);
            word(&text)
        };
        Ok(Words {
            program: word(launch.invocation.program.as_os_str())?,
            argv: launch.invocation.argv.iter().map(|argument| word(argument)).collect::<Result<_, _>>()?,
            env: launch.env.iter().map(variable).collect::<Result<_, _>>()?,
        })
    }

    /// The number of arguments, then each word with its NUL.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = u64::to_le_bytes(self.argv.len() as u64).to_vec();
        for word in std::iter::once(&self.program).chain(&self.argv).chain(&self.env) {
            bytes.extend_from_slice(word.as_bytes_with_nul());
        }
        bytes
    }

    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn decode(bytes: &[u8]) -> Option<Words> {
        let (count, words) = bytes.split_first_chunk::<8>()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let mut words = words
            .split_inclusive(|byte| *byte == 0)
            .map(|word| CString::from_vec_with_nul(word.to_vec()).ok())
            .collect::<Option<Vec<_>>>()?
            .into_iter();
        let program = words.next()?;
        let argv: Vec<_> = words.by_ref().take(count).collect();
        (argv.len() == count).then(|| Words { program, argv, env: words.collect() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_arrive_as_they_were_sent(
            program in "[^\0]+",
            argv in prop::collection::vec("[^\0]*", 0..6),
            env in prop::collection::vec("[^\0]*", 0..6),
        ) {
            let words = |words: Vec<String>| words.into_iter().map(|word| CString::new(word).unwrap()).collect();
            let sent = Words { program: CString::new(program).unwrap(), argv: words(argv), env: words(env) };
            prop_assert_eq!(Words::decode(&sent.encode()), Some(sent));
        }

        #[test]
        fn anything_else_is_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Words::decode(&bytes);
        }
    }
}
