//! Bodies of the OAuth endpoints: a form or JSON, each parameter a text, once.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde_json::Value;

use super::OAuthError;
use crate::app::App;

/// Parameters by name. No Debug: they hold codes and tokens.
pub(crate) struct Params(BTreeMap<String, String>);

impl FromRequest<App> for Params {
    type Rejection = OAuthError;

    async fn from_request(request: Request, app: &App) -> Result<Self, OAuthError> {
        let headers = request.headers().clone();
        let body = Bytes::from_request(request, app)
            .await
            .map_err(|_| OAuthError::invalid_request("the body is too long, or broke off"))?;
        Self::parse(&headers, &body)
    }
}

impl Params {
    /// Reads a body by its content type.
    fn parse(headers: &HeaderMap, body: &Bytes) -> Result<Self, OAuthError> {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => Self::json(body),
            "application/x-www-form-urlencoded" => Self::form(body),
            _ => {
                Err(OAuthError::invalid_request("send application/x-www-form-urlencoded or application/json"))
            }
        }
    }

    fn form(body: &[u8]) -> Result<Self, OAuthError> {
        let text =
            std::str::from_utf8(body).map_err(|_| OAuthError::invalid_request("the form is not UTF-8"))?;
        Self::once(url::form_urlencoded::parse(text.as_bytes()).into_owned())
    }

    fn json(body: &[u8]) -> Result<Self, OAuthError> {
        // The parser's own message may quote the body.
        let object: BTreeMap<String, Value> = serde_json::from_slice(body)
            .map_err(|_| OAuthError::invalid_request("the body is not a JSON object"))?;
        let mut params = BTreeMap::new();
        for (name, value) in object {
            match value {
                Value::Null => {}
                Value::String(text) => drop(params.insert(name, text)),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(OAuthError::invalid_request("every parameter is a string"));
                }
            }
        }
        Ok(Self(params))
    }

    /// From pairs; a parameter that stands twice is refused (RFC 6749, 3.1 and 3.2).
    pub(crate) fn once(pairs: impl Iterator<Item = (String, String)>) -> Result<Self, OAuthError> {
        let mut params = BTreeMap::new();
        for (name, value) in pairs {
            // What was no UTF-8 has been replaced by this; no parameter of ours holds it.
            if name.contains('\u{fffd}') || value.contains('\u{fffd}') {
                return Err(OAuthError::invalid_request("a parameter is not UTF-8"));
            }
            if params.insert(name, value).is_some() {
                return Err(OAuthError::invalid_request("a parameter stands twice"));
            }
        }
        Ok(Self(params))
    }

    /// A parameter; an empty one counts as absent.
    pub(crate) fn optional(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn required(&self, name: &'static str) -> Result<&str, OAuthError> {
        self.optional(name).ok_or_else(|| OAuthError::invalid_request(format!("'{name}' is missing")))
    }
}
