//! What a test run came to, for a person and for whatever reads the last line.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Step;

/// How a step ended.
pub(super) enum Outcome {
    Passed(Duration),
    Failed(Duration, String),
    NotRun(&'static str),
}

/// All steps so far.
#[derive(Default)]
pub(super) struct Report {
    steps: Vec<(Step, Outcome)>,
    pub(super) counts: TestCounts,
}

/// What nextest ran.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct TestCounts {
    pub(super) run: usize,
    /// Full names, `package::path`.
    pub(super) failed: Vec<String>,
}

impl Report {
    pub(super) fn add(&mut self, step: Step, outcome: Outcome) {
        self.steps.push((step, outcome));
    }

    pub(super) fn failed(&self, step: Step) -> bool {
        self.steps.iter().any(|(s, outcome)| *s == step && matches!(outcome, Outcome::Failed(..)))
    }

    pub(super) fn passed(&self) -> bool {
        self.steps.iter().all(|(_, outcome)| matches!(outcome, Outcome::Passed(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, outcome) in &self.steps {
            let name = step.name();
            match outcome {
                Outcome::Passed(time) => writeln!(f, "ok    {name:<6} {:>7.1} s", time.as_secs_f64())?,
                Outcome::Failed(time, why) => {
                    writeln!(f, "FAIL  {name:<6} {:>7.1} s  {why}", time.as_secs_f64())?;
                }
                Outcome::NotRun(why) => writeln!(f, "-     {name:<6}    not run: {why}")?,
            }
        }
        if self.steps.iter().any(|(step, _)| *step == Step::Tests) {
            let failed = self.counts.failed.len();
            writeln!(f, "tests: {} passed, {failed} failed", self.counts.run - failed)?;
        }
        Ok(())
    }
}

impl TestCounts {
    /// From nextest's JUnit file; nothing ran where there is none.
    pub(super) fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let xml = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::parse(&xml))
    }

    /// Reads what nextest writes, one `<testcase` per test, whose body has a `<failure` or `<error` where it failed.
    /// Output of tests is escaped in it, so that no test can fake a tag.
    fn parse(xml: &str) -> Self {
        let mut counts = Self::default();
        for case in xml.split("<testcase ").skip(1) {
            counts.run += 1;
            let case = case.split("</testcase>").next().unwrap_or(case);
            if case.contains("<failure") || case.contains("<error") {
                let name = attribute(case, "name").unwrap_or("?");
                let package = attribute(case, "classname").unwrap_or("?");
                counts.failed.push(format!("{package}::{name}"));
            }
        }
        counts
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let tag = tag.split('>').next()?;
    let (_, rest) = tag.split_once(&format!("{name}=\"")).filter(|(before, _)| !before.ends_with("class"))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="0" timestamp="t" time="0.1">
    <testsuite name="deskhand-jail" tests="3" disabled="0" errors="0" failures="1">
        <testcase name="reads" classname="deskhand-jail" timestamp="t" time="0.001">
        </testcase>
        <testcase name="links::stay" classname="deskhand-jail" timestamp="t" time="0.002">
            <failure message="thread panicked" type="test failure">&lt;testcase out</failure>
        </testcase>
        <testcase name="writes" classname="deskhand-jail" timestamp="t" time="0.001">
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn failed_tests_are_named() {
        let counts = TestCounts::parse(JUNIT);
        assert_eq!(counts, TestCounts { run: 3, failed: vec!["deskhand-jail::links::stay".to_owned()] });
    }

    #[test]
    fn the_report_ends_with_the_tests_that_passed_and_failed() {
        let mut report = Report { counts: TestCounts::parse(JUNIT), ..Report::default() };
        report.add(Step::Fmt, Outcome::Passed(Duration::from_millis(800)));
        report.add(Step::Tests, Outcome::Failed(Duration::from_secs(75), "1 of 3 failed".to_owned()));
        let expected = "\
ok    fmt        0.8 s
FAIL  tests     75.0 s  1 of 3 failed
tests: 2 passed, 1 failed
";
        assert_eq!(report.to_string(), expected);
        assert!(!report.passed());
    }
}
