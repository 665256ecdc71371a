//! The tray as the desktop sees it: the item and its menu on the bus.

use std::collections::HashMap;

use zbus::blocking::{Connection, Proxy};
use zbus::zvariant::{OwnedValue, Value};

use crate::screen::{Screen, until};

type Layout = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);

/// The app's item.
pub(crate) struct Tray {
    bus: Connection,
    name: String,
    path: String,
}

/// One entry of the menu.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    id: i32,
    pub(crate) label: String,
}

impl Tray {
    /// Waits for the item to come.
    pub(crate) fn of(screen: &Screen) -> Self {
        let bus = zbus::blocking::connection::Builder::address(screen.bus.as_str()).unwrap().build().unwrap();
        let mut item = String::new();
        until("the tray item", || {
            let Ok(watcher) = Proxy::new(
                &bus,
                "org.kde.StatusNotifierWatcher",
                "/StatusNotifierWatcher",
                "org.kde.StatusNotifierWatcher",
            ) else {
                return false;
            };
            let items: Vec<String> =
                watcher.get_property("RegisteredStatusNotifierItems").unwrap_or_default();
            item = items.into_iter().next().unwrap_or_default();
            !item.is_empty()
        });
        let at = item.find('/').expect("an item's address has a path");
        Self { name: item[..at].to_owned(), path: item[at..].to_owned(), bus }
    }

    fn item(&self) -> Proxy<'_> {
        Proxy::new(&self.bus, self.name.as_str(), self.path.as_str(), "org.kde.StatusNotifierItem").unwrap()
    }

    fn menu(&self) -> Proxy<'_> {
        let path: zbus::zvariant::OwnedObjectPath = self.item().get_property("Menu").unwrap();
        Proxy::new_owned(self.bus.clone(), self.name.clone(), path, "com.canonical.dbusmenu").unwrap()
    }

    /// Every entry that can be seen, those of submenus after theirs.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let menu = self.menu();
        let (_, root): (u32, Layout) = menu.call("GetLayout", &(0i32, -1i32, Vec::<String>::new())).unwrap();
        let mut entries = Vec::new();
        collect(&root, &mut entries);
        entries
    }

    /// The entry with this label, once it is there.
    pub(crate) fn entry(&self, label: &str) -> Entry {
        let mut found = None;
        until(&format!("the entry '{label}'"), || {
            found = self.entries().into_iter().find(|entry| entry.label == label);
            found.is_some()
        });
        found.unwrap()
    }

    /// Clicks it, as the panel does.
    pub(crate) fn click(&self, label: &str) {
        let entry = self.entry(label);
        let event = (entry.id, "clicked", Value::from(0i32), 0u32);
        self.menu().call_method("Event", &event).unwrap();
    }
}

fn collect((id, properties, children): &Layout, into: &mut Vec<Entry>) {
    let text =
        |name: &str| properties.get(name).and_then(|value| <&str>::try_from(value).ok()).map(str::to_owned);
    if let Some(label) = text("label") {
        // An underscore marks a key; two are one.
        into.push(Entry {
            id: *id,
            label: label.replace("__", "\u{0}").replace('_', "").replace('\u{0}', "_"),
        });
    }
    for child in children {
        let child: Layout = child.try_clone().unwrap().try_into().unwrap();
        collect(&child, into);
    }
}
