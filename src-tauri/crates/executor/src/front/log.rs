//! The log's commands, and what the About page lists.

use audit::AuditKey;

use super::view::{About, ActivityRow, ActivitySummary, Filter, Host, Verification};
use super::{Front, blocking};

impl Front {
    pub(super) async fn activity_summary(&self, filter: Filter) -> Result<ActivitySummary, String> {
        let shared = self.shared.clone();
        blocking(move || shared.activity.summary(&filter).map_err(unreadable)).await?
    }

    pub(super) async fn activity_rows(
        &self,
        filter: Filter,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<ActivityRow>, String> {
        let shared = self.shared.clone();
        blocking(move || shared.activity.rows(&filter, offset, limit).map_err(unreadable)).await?
    }

    pub(super) async fn activity_verify(&self) -> Result<Verification, String> {
        let shared = self.shared.clone();
        blocking(move || {
            let machine = shared.executor.machine();
            let key = key(&shared.vault)?;
            // What is written is read back: the last line may not be in the file yet.
            machine.audit.sync().map_err(|error| format!("the log cannot be written: {error}"))?;
            let anchor = crate::audit_anchor(&shared.vault).map_err(|error| error.to_string())?;
            let report = audit::verify_all(&machine.dirs.logs, &key, anchor.as_ref());
            Ok(Verification {
                ok: report.is_ok(),
                records: report.records(),
                files: report.files.len(),
                problems: report.problems.iter().map(ToString::to_string).collect(),
            })
        })
        .await?
    }

    pub(super) async fn activity_export(&self) -> Result<Option<String>, String> {
        let shared = self.shared.clone();
        blocking(move || {
            let Some(file) = shared.native.pick_file("deskhand-activity.zip") else { return Ok(None) };
            let key = key(&shared.vault)?;
            audit::export(&shared.executor.machine().dirs.logs, &key, &file)
                .map_err(|error| format!("the log was not exported: {error}"))?;
            Ok(Some(file.display().to_string()))
        })
        .await?
    }

    /// Safety.md §9: all hosts in one place.
    pub(super) fn about(&self) -> About {
        let machine = self.shared.executor.machine();
        let platform = machine.platform.host().to_owned();
        let model = url::Url::parse(&machine.config().local_llm.url).ok();
        let mut hosts = vec![Host { host: platform, what_for: "the platform you connect to and sign in at" }];
        if let Some(host) =
            model.as_ref().and_then(url::Url::host_str).filter(|_| machine.config().capabilities.local_llm)
        {
            hosts.push(Host { host: host.to_owned(), what_for: "the model on this computer" });
        }
        About {
            version: machine.version,
            hosts,
            licences: self.shared.native.licences(),
            config_dir: machine.dirs.config.display().to_string(),
            log_dir: machine.dirs.logs.display().to_string(),
        }
    }
}

fn unreadable(error: std::io::Error) -> String {
    format!("the log cannot be read: {error}")
}

fn key(vault: &vault::Vault) -> Result<AuditKey, String> {
    let key = vault.audit_key().map_err(|error| format!("the log's key cannot be read: {error}"))?;
    Ok(AuditKey::new(*key))
}
