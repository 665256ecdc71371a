//! The folder that the agent works in: a shop's prices, with a test that fails. It needs nothing but the system's own
//! shell, so its two forms say the same in two languages.

use std::io;
use std::path::Path;

/// Its folder's name.
pub(super) const NAME: &str = "bookshop";

/// The program that runs its tests, and the one that the person allows in its folder.
pub(super) const PROGRAM: &str = if cfg!(windows) { "cmd" } else { "sh" };

/// How the tests are run.
pub(super) const TEST: &[&str] =
    if cfg!(windows) { &["cmd", "/d", "/c", "test.cmd"] } else { &["sh", "test.sh"] };

/// A shell line that begins with what is allowed and goes on with what is not.
pub(super) const SHELL_LINE: &str =
    if cfg!(windows) { "cmd /c test.cmd & rd /s /q .." } else { "sh test.sh; rm -rf .." };

/// A command that takes until it is ended, and leaves a sign of life in [`SIGN_OF_LIFE`].
pub(super) const LONG: &[&str] = if cfg!(windows) {
    &["cmd", "/d", "/c", "ping -n 600 127.0.0.1 > running"]
} else {
    &["sh", "-c", "echo $$ > running; exec sleep 600"]
};

/// On Unix it holds the process's id; on Windows it cannot be deleted as long as the process lives.
pub(super) const SIGN_OF_LIFE: &str = "running";

/// The file with the fault.
pub(super) const SOURCE: &str = if cfg!(windows) { "src/price.cmd" } else { "src/price.sh" };

/// The fault, and what is right.
pub(super) const FAULT: (&str, &str) =
    if cfg!(windows) { ("if %1 gtr 3", "if %1 geq 3") } else { ("-gt 3", "-ge 3") };

const README: &str = "\
The price of an order of books, in cents.
From three books on, a tenth is taken off.
";

const UNIX: &[(&str, &str)] = &[
    ("README.txt", README),
    (
        "src/price.sh",
        "\
# price COUNT CENTS
price() {
    total=$(($1 * $2))
    if [ \"$1\" -gt 3 ]; then
        total=$((total * 9 / 10))
    fi
    echo \"$total\"
}
",
    ),
    (
        "test.sh",
        "\
. ./src/price.sh
failed=0
check() { # NAME COUNT CENTS EXPECTED
    got=$(price \"$2\" \"$3\")
    if [ \"$got\" = \"$4\" ]; then
        echo \"ok    $1\"
    else
        echo \"FAIL  $1: expected $4, got $got\"
        failed=1
    fi
}
check 'one book' 1 1000 1000
check 'two books' 2 1000 2000
check 'three books, a tenth off' 3 1000 2700
check 'four books, a tenth off' 4 1000 3600
exit $failed
",
    ),
];

const WINDOWS: &[(&str, &str)] = &[
    ("README.txt", README),
    (
        "src/price.cmd",
        "\
@rem price COUNT CENTS\r
@set /a total=%1*%2\r
@if %1 gtr 3 set /a total=total*9/10\r
",
    ),
    (
        "test.cmd",
        "\
@echo off\r
set failed=0\r
call :check \"one book\" 1 1000 1000\r
call :check \"two books\" 2 1000 2000\r
call :check \"three books, a tenth off\" 3 1000 2700\r
call :check \"four books, a tenth off\" 4 1000 3600\r
exit /b %failed%\r
:check\r
call src\\price.cmd %2 %3\r
if \"%total%\"==\"%4\" (echo ok    %~1) else (echo FAIL  %~1: expected %4, got %total%& set failed=1)\r
exit /b\r
",
    ),
];

/// A file beside the project that is nobody else's business.
pub(super) const PRIVATE: (&str, &str) = ("diary.txt", "Dear diary, the shop does not add up.\n");

/// Writes the project into `folder/bookshop`, and the private file into `folder`.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    let root = folder.join(NAME);
    std::fs::create_dir_all(root.join("src"))?;
    for (name, text) in if cfg!(windows) { WINDOWS } else { UNIX } {
        std::fs::write(root.join(name), text)?;
    }
    std::fs::write(folder.join(PRIVATE.0), PRIVATE.1)?;
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.join(PRIVATE.0), root.join("notes.txt"))?;
    Ok(())
}
