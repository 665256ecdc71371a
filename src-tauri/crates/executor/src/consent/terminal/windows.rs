//! The console by its input events: a line read in the usual way could not be broken off when the prompt is
//! withdrawn.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::Mutex;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Console::{
    CONSOLE_SCREEN_BUFFER_INFO, FlushConsoleInputBuffer, GetConsoleScreenBufferInfo,
    GetNumberOfConsoleInputEvents, INPUT_RECORD, KEY_EVENT, ReadConsoleInputW, WriteConsoleW,
};
use windows_sys::Win32::System::Threading::{CreateEventW, INFINITE, SetEvent, WaitForMultipleObjects};

use super::{Typed, Waited};

/// Ctrl+Z, which ends input here.
const END: u16 = 0x1A;

/// The console of this process.
pub(super) struct Console {
    input: File,
    output: File,
    /// Set to end a wait; resets itself.
    wake: OwnedHandle,
    /// First half of a character above U+FFFF.
    half: Mutex<Option<u16>>,
}

impl Console {
    pub(super) fn open() -> Option<Self> {
        // Reading needs no right to write, but flushing and the screen's size do.
        let open = |name| OpenOptions::new().read(true).write(true).open(name).ok();
        let (input, output) = (open("CONIN$")?, open("CONOUT$")?);
        // SAFETY: no attributes and no name are both valid; the result is checked.
        let event = unsafe { CreateEventW(std::ptr::null(), 0, 0, std::ptr::null()) };
        if event.is_null() {
            return None;
        }
        // SAFETY: the event was just made and nobody else owns it.
        let wake = unsafe { OwnedHandle::from_raw_handle(event) };
        Some(Self { input, output, wake, half: Mutex::new(None) })
    }

    fn input(&self) -> HANDLE {
        self.input.as_raw_handle()
    }

    fn output(&self) -> HANDLE {
        self.output.as_raw_handle()
    }

    /// There is no background of a console.
    pub(super) fn is_ours(&self) -> bool {
        true
    }

    pub(super) fn width(&self) -> usize {
        let mut info = CONSOLE_SCREEN_BUFFER_INFO::default();
        // SAFETY: the handle is open and `info` is the structure this call fills.
        let known = unsafe { GetConsoleScreenBufferInfo(self.output(), &mut info) } != 0;
        let columns = i32::from(info.srWindow.Right) - i32::from(info.srWindow.Left) + 1;
        if known { usize::try_from(columns).unwrap_or(80).max(20) } else { 80 }
    }

    pub(super) fn discard_input(&self) {
        // SAFETY: the handle is open.
        unsafe { FlushConsoleInputBuffer(self.input()) };
    }

    /// What cannot be written is a prompt that nobody sees; it runs out.
    pub(super) fn write(&self, text: &str) {
        let text: Vec<u16> = text.encode_utf16().collect();
        // The console takes a limited amount at a time.
        for part in text.chunks(4096) {
            let (length, mut written) = (u32::try_from(part.len()).unwrap_or(0), 0);
            // SAFETY: the handle is open, and `part` has `length` units.
            unsafe {
                WriteConsoleW(self.output(), part.as_ptr(), length, &mut written, std::ptr::null());
            }
        }
    }

    pub(super) fn wake(&self) {
        // SAFETY: the event is open for as long as `self`.
        unsafe { SetEvent(self.wake.as_raw_handle()) };
    }

    pub(super) fn wait(&self, for_input: bool) -> Waited {
        let handles = [self.wake.as_raw_handle(), self.input()];
        let count = if for_input { 2 } else { 1 };
        // SAFETY: the first `count` handles are open for as long as `self`.
        match unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, INFINITE) } {
            WAIT_OBJECT_0 => Waited::Woken,
            woken if woken == WAIT_OBJECT_0 + 1 => Waited::Input,
            _ => Waited::Gone,
        }
    }

    /// The characters typed so far, echoed, since the console does not do it for events.
    pub(super) fn read(&self) -> Typed {
        let mut units = Vec::new();
        loop {
            let mut waiting = 0;
            // SAFETY: the handle is open and `waiting` is where the count goes.
            if unsafe { GetNumberOfConsoleInputEvents(self.input(), &mut waiting) } == 0 {
                return Typed::Gone;
            }
            if waiting == 0 {
                break;
            }
            let (mut record, mut read) = (INPUT_RECORD::default(), 0);
            // SAFETY: the handle is open and there is room for the one record asked for.
            if unsafe { ReadConsoleInputW(self.input(), &mut record, 1, &mut read) } == 0 {
                return Typed::Gone;
            }
            units.extend(unit(&record));
        }
        if units.first() == Some(&END) {
            return Typed::End;
        }
        let text = self.decode(&units);
        if text.is_empty() {
            return Typed::Nothing;
        }
        self.write(&text.replace('\r', "\r\n").replace('\u{8}', "\u{8} \u{8}"));
        Typed::Text(text)
    }

    fn decode(&self, units: &[u16]) -> String {
        let mut half = self.half.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut all: Vec<u16> = half.take().into_iter().chain(units.iter().copied()).collect();
        if all.last().is_some_and(|last| (0xD800..0xDC00).contains(last)) {
            *half = all.pop();
        }
        // Only what an answer can contain is echoed or kept.
        let kept = |c: &char| !c.is_control() || matches!(c, '\r' | '\n' | '\u{8}');
        String::from_utf16_lossy(&all).chars().filter(kept).collect()
    }
}

/// The character of a key pressed down.
fn unit(record: &INPUT_RECORD) -> Option<u16> {
    if u32::from(record.EventType) != KEY_EVENT {
        return None;
    }
    // SAFETY: the type says which member of the union is set, and both members of `uChar` are plain numbers.
    let (down, unit) = unsafe { (record.Event.KeyEvent.bKeyDown, record.Event.KeyEvent.uChar.UnicodeChar) };
    (down != 0 && unit != 0).then_some(unit)
}
