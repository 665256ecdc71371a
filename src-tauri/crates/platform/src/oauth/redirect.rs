//! Where a browser goes after the decision.

use url::Url;

/// The registered redirect with these parameters. A key that the registered URI already has is replaced, so that
/// nobody reads the wrong one of two.
pub(crate) fn with_params(redirect_uri: &str, params: &[(&str, &str)]) -> Result<String, url::ParseError> {
    let mut url = Url::parse(redirect_uri)?;
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(key, _)| !params.iter().any(|(name, _)| name == key))
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(params);
    url.set_fragment(None);
    Ok(url.into())
}

/// What a page's `form-action` must allow beside itself: browsers check a form's redirects too.
pub(crate) fn csp_source(redirect_uri: &str) -> Option<String> {
    let url = Url::parse(redirect_uri).ok()?;
    match url.scheme() {
        "http" | "https" => Some(url.origin().ascii_serialization()),
        scheme => Some(format!("{scheme}:")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_same_name_are_replaced_and_others_kept() {
        let url = with_params("http://h/cb?state=old&keep=1&code=x#f", &[("code", "c d"), ("state", "s&t")]);
        assert_eq!(url.unwrap(), "http://h/cb?keep=1&code=c+d&state=s%26t");
        assert_eq!(
            with_params("deskhand://oauth/callback", &[("error", "access_denied")]).unwrap(),
            "deskhand://oauth/callback?error=access_denied"
        );
    }

    #[test]
    fn a_form_may_lead_to_the_redirect_and_nowhere_else() {
        assert_eq!(csp_source("http://localhost:41899/callback").unwrap(), "http://localhost:41899");
        assert_eq!(csp_source("deskhand://oauth/callback").unwrap(), "deskhand:");
    }
}
