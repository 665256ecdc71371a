//! A person's browser, as far as the sign-in pages need one: it keeps cookies, follows what it is sent to, and submits
//! forms with the hidden fields that they came with.

use std::collections::BTreeMap;

use platform::FirstUser;
use reqwest::{Client, RequestBuilder, StatusCode, header};
use url::Url;

use crate::failure::{Code, Failure, Outcome};

/// An authorization is two forms and a way back; more is a circle.
const MOST_REDIRECTS: usize = 5;

pub(super) struct Browser {
    http: Client,
    cookies: BTreeMap<String, String>,
}

/// A page, and where it came from.
struct Page {
    url: Url,
    html: String,
}

impl Browser {
    /// With a client that keeps no cookies and follows no redirects itself.
    pub(super) fn new(http: Client) -> Self {
        Self { http, cookies: BTreeMap::new() }
    }

    /// Opens the address that a program wants opened, signs in, approves, and ends on the program's own page.
    pub(super) async fn approve(mut self, authorize: &Url, user: &FirstUser) -> Outcome {
        let sign_in = self.open(authorize.clone()).await?;
        let approval = self.submit(&sign_in, &[("name", &user.name), ("password", &user.password)]).await?;
        if !approval.html.contains("Approve") {
            return Err(wrong("signing in did not lead to the approval page"));
        }
        let last = self.submit(&approval, &[("decision", "approve")]).await?;
        if last.url.path() == "/callback" {
            Ok(())
        } else {
            Err(wrong("the approval did not lead back to the program"))
        }
    }

    async fn open(&mut self, url: Url) -> Outcome<Page> {
        let mut url = url;
        for _ in 0..MOST_REDIRECTS {
            let request = self.http.get(url.clone());
            match self.send(&url, request).await? {
                Answer::Page(html) => return Ok(Page { url, html }),
                Answer::Redirect(next) => url = next,
            }
        }
        Err(wrong("the sign-in goes in circles"))
    }

    /// Submits the page's form with these fields filled in.
    async fn submit(&mut self, page: &Page, filled: &[(&str, &str)]) -> Outcome<Page> {
        let form = main_form(&page.html).ok_or_else(|| wrong("a sign-in page has no form"))?;
        let action = attribute(form, "action").unwrap_or_default();
        let url = page.url.join(&action).map_err(wrong)?;
        let mut fields = hidden_fields(form);
        fields.extend(filled.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let request = self.http.post(url.clone()).form(&fields);
        match self.send(&url, request).await? {
            Answer::Page(html) => Ok(Page { url, html }),
            Answer::Redirect(next) => self.open(next).await,
        }
    }

    async fn send(&mut self, url: &Url, request: RequestBuilder) -> Outcome<Answer> {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request
            .header(header::ACCEPT, "text/html")
            .header(header::COOKIE, cookies.join("; "))
            .send()
            .await
            .map_err(|error| wrong(error.without_url()))?;
        for cookie in answer.headers().get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
            if let Some((name, value)) = cookie.split_once('=') {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let status = answer.status();
        if status == StatusCode::SEE_OTHER {
            let to =
                answer.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
            return url.join(to).map(Answer::Redirect).map_err(wrong);
        }
        let html = answer.text().await.map_err(|error| wrong(error.without_url()))?;
        if status.is_success() {
            Ok(Answer::Page(html))
        } else {
            Err(wrong(format_args!("a page answered {status}")))
        }
    }
}

enum Answer {
    Page(String),
    Redirect(Url),
}

fn wrong(what: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Failed, format!("the browser: {what}"))
}

/// The page's last form: the one before it, where there is one, signs out.
fn main_form(html: &str) -> Option<&str> {
    let form = &html[html.rfind("<form")?..];
    Some(&form[..form.find("</form>")?])
}

/// The first attribute of this name.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0;
    Some(value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

fn hidden_fields(form: &str) -> Vec<(String, String)> {
    form.split("<input")
        .skip(1)
        .filter_map(|input| input.split_once('>').map(|(tag, _)| tag))
        .filter(|tag| attribute(tag, "type").as_deref() == Some("hidden"))
        .filter_map(|tag| Some((attribute(tag, "name")?, attribute(tag, "value")?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_submitted_with_its_hidden_fields() {
        let html = "<form action=\"/out\"><input type=\"hidden\" name=\"csrf\" value=\"no\"></form>\
                    <form method=\"post\" action=\"/in?a=1&amp;b=2\"><input type=\"hidden\" name=\"csrf\" value=\"yes\">\
                    <input id=\"name\" name=\"name\"></form>";
        let form = main_form(html).unwrap();
        assert_eq!(attribute(form, "action").unwrap(), "/in?a=1&b=2");
        assert_eq!(hidden_fields(form), [("csrf".to_owned(), "yes".to_owned())]);
    }
}
