//! The address the browser comes back to.

use secrecy::SecretString;
use url::Url;

use super::OAuthError;
use super::error::printable;
use super::pkce::State;

/// The code of a callback that belongs to the attempt with `state`.
pub(super) fn code_of(callback: &Url, state: &State) -> Result<SecretString, OAuthError> {
    let mut found = Parameters::default();
    for (name, value) in callback.query_pairs() {
        let slot = match &*name {
            "state" => &mut found.state,
            "code" => &mut found.code,
            "error" => &mut found.error,
            "error_description" => &mut found.description,
            // A platform may add more (`iss`, `session_state`).
            _ => continue,
        };
        if slot.replace(value.into_owned()).is_some() {
            return Err(OAuthError::BadCallback);
        }
    }
    match found.state {
        None => return Err(OAuthError::MissingState),
        Some(other) if !state.is(&other) => return Err(OAuthError::WrongState),
        Some(_) => {}
    }
    match (found.code, found.error) {
        (Some(code), None) if !code.is_empty() => Ok(SecretString::from(code)),
        (None, Some(error)) => Err(OAuthError::Denied(reason(&error, found.description.as_deref()))),
        (Some(_) | None, Some(_) | None) => Err(OAuthError::BadCallback),
    }
}

#[derive(Default)]
struct Parameters {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

fn reason(error: &str, description: Option<&str>) -> String {
    let error = printable(error);
    match description {
        _ if error == "access_denied" => "it was declined in the browser".to_owned(),
        Some(description) => format!("{error} ({})", printable(description)),
        None => error,
    }
}

/// Whether `address` is where the attempt with `redirect` ends, whatever its query says.
pub(super) fn is_for(address: &Url, redirect: &Url) -> bool {
    let place = |url: &Url| {
        let mut place = url.clone();
        place.set_query(None);
        place.set_fragment(None);
        place
    };
    place(address) == *redirect && address.query().is_some()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn code(query: &str, state: &State) -> Result<String, OAuthError> {
        let query = query.replace("STATE", state.expose());
        let url = Url::parse(&format!("http://localhost:41899/callback{query}")).unwrap();
        code_of(&url, state).map(|code| code.expose_secret().to_owned())
    }

    #[test]
    fn a_code_is_taken_only_with_the_state_of_the_attempt() {
        let state = State::new().unwrap();
        assert_eq!(code("?state=STATE&code=a%2Fb&iss=x", &state).unwrap(), "a/b");
        assert!(matches!(code("", &state), Err(OAuthError::MissingState)));
        assert!(matches!(code("?code=a", &state), Err(OAuthError::MissingState)));
        assert!(matches!(code("?code=a&state=", &state), Err(OAuthError::WrongState)));
        assert!(matches!(code("?code=a&state=STATEx", &state), Err(OAuthError::WrongState)));
        assert!(matches!(code("?error=x&state=other", &state), Err(OAuthError::WrongState)));
        for query in [
            "?state=STATE",
            "?state=STATE&code=",
            "?state=STATE&code=a&code=b",
            "?state=STATE&state=STATE&code=a",
        ] {
            assert!(matches!(code(query, &state), Err(OAuthError::BadCallback)), "{query}");
        }
    }

    #[test]
    fn an_error_is_told_in_one_clean_line() {
        let state = State::new().unwrap();
        let text = |query| code(query, &state).unwrap_err().to_string();
        assert!(
            text("?state=STATE&error=access_denied&error_description=x").contains("declined in the browser")
        );
        let hostile = text("?state=STATE&error=e%1b%5b31m&error_description=a%0ab%E2%80%AE");
        assert!(hostile.contains("e·[31m (a·b·)"), "{hostile}");
        assert!(text(&format!("?state=STATE&error={}", "x".repeat(5000))).len() < 300);
    }
}
