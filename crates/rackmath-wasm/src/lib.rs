//! The server's answers without a server: what it would say to a path and a body, computed where the page is.
//!
//! A page writes the catalogue into [`wire::room`] and calls [`wire::stock`], once or in parts; then, for each request, it writes
//! `path\nbody` and calls [`wire::respond`]. What comes back is a line `status type`, a line feed, and the bytes. No value is shared but
//! these bytes, so there is nothing to generate and nothing that must match but this sentence.
//!
//! | path | body | as on the server |
//! |------|------|------------------|
//! | `api`, `api/QUESTION/fields`, `api/QUESTION/schema` | none | `GET` |
//! | `api/QUESTION`, `api/QUESTION/typed`, `api/words` | JSON | `POST` |
//! | `export/QUESTION?figure=/time&format=svg`, `draw?format=svg` | JSON | `POST` |

pub mod wire;

use rackmath::ask::{self, Question, Terms};
use rackmath::{Catalog, Error, field};
use rackmath_report::page;
use rackmath_units::Effort;

/// What was said to a request.
pub struct Response {
    /// As over HTTP: 200, 404 for what is not there, 422 for what is refused.
    pub status: u16,
    pub mime: &'static str,
    pub bytes: Vec<u8>,
}

const JSON: &str = "application/json";

/// What the server would answer.
pub fn respond(catalog: &Catalog, path: &str, body: &str) -> Response {
    match answered(catalog, path, body) {
        Ok((mime, bytes)) => Response { status: 200, mime, bytes },
        Err((status, error)) => {
            let shown = error.shown(str::to_owned, str::to_owned);
            let text = serde_json::to_string_pretty(&shown).unwrap_or_default() + "\n";
            Response { status, mime: JSON, bytes: text.into_bytes() }
        }
    }
}

type Answered = Result<(&'static str, Vec<u8>), (u16, Error)>;

fn answered(catalog: &Catalog, path: &str, body: &str) -> Answered {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let refused = |error| (422, error);
    let question = |name: &str| Question::find(name).map_err(|error| (404, error));
    // One thread: the page has others to draw with.
    let terms = || Terms { effort: Effort::default().alone(), ..Terms::default() };
    let answer = |name: &str, body: &str| {
        let request = ask::parse(body).map_err(refused)?;
        question(name)?.answer(catalog, request, &terms()).and_then(|reply| reply.json()).map_err(refused)
    };
    let text = match *parts.as_slice() {
        ["api"] => page::list().map_err(refused)?,
        ["api", "words"] => page::spoken(body).map_err(refused)?,
        ["api", name] => answer(name, body)?,
        ["api", name, "fields"] => page::fields(question(name)?).map_err(refused)?,
        ["api", name, "schema"] => ask::json(&question(name)?.schema()).map_err(refused)?,
        ["api", name, "typed"] => {
            let question = question(name)?;
            let typed = || {
                let request = field::typed(&question.fields(), &ask::parse(body)?)?;
                let reply = question.answer(catalog, request.clone(), &terms())?;
                page::shown(question, &request, &reply)
            };
            typed().map_err(refused)?
        }
        ["export", name] => {
            let format = page::format(&wanted(query, "format")).map_err(refused)?;
            let answer = answer(name, body)?;
            let figure = page::picked(answer.as_bytes(), &wanted(query, "figure")).map_err(refused)?;
            return Ok((format.mime, (format.draw)(&figure)));
        }
        ["draw"] => {
            let format = page::format(&wanted(query, "format")).map_err(refused)?;
            return Ok((format.mime, (format.draw)(&page::drawable(body).map_err(refused)?)));
        }
        _ => return Err((404, Error::said("nothing is here").hint("the questions are under api"))),
    };
    Ok((JSON, text.into_bytes()))
}

/// The value of a key of a query; nothing where it is not there.
fn wanted(query: &str, key: &str) -> String {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default();
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(b) = rest.next() {
        let mut digits = rest.clone();
        let hex = |d: Option<u8>| d.and_then(|d| char::from(d).to_digit(16));
        match (b, hex(digits.next()), hex(digits.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = digits;
            }
            _ => bytes.push(b),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        Catalog::from_bundle(rackmath_catalog::embedded().bundle().as_bytes()).expect("reads")
    }

    fn said(path: &str, body: &str) -> (u16, String) {
        let response = respond(&catalog(), path, body);
        (response.status, String::from_utf8_lossy(&response.bytes).into_owned())
    }

    #[test]
    fn an_answer_is_the_librarys() {
        let asked = r#"{"batch": 64}"#;
        let own = Question::Step.ask(&rackmath_catalog::embedded(), asked).expect("answers");
        assert_eq!(said("api/step", asked), (200, own));
    }

    #[test]
    fn what_is_refused_says_why_and_what_is_not_there_says_so() {
        let (status, text) = said("api/step", r#"{"setting": {"model": "deepsek-v3"}}"#);
        assert!(status == 422 && text.contains("deepseek-v3"), "{status} {text}");
        assert_eq!(said("api/stepp", "{}").0, 404);
        assert_eq!(said("elsewhere", "{}").0, 404);
        assert_eq!(said("export/curve?figure=/time&format=gif", "{}").0, 422);
    }

    #[test]
    fn a_query_is_read_as_browsers_write_it() {
        assert_eq!(wanted("figure=%2Ftime%2Fa&format=svg", "figure"), "/time/a");
        assert_eq!(wanted("figure=%2&format=svg", "figure"), "%2");
        assert_eq!(wanted("format=svg", "figure"), "");
    }

    #[test]
    fn a_picture_is_a_picture() {
        let (status, text) = said("export/curve?figure=%2Ftime&format=svg", "{}");
        assert!(status == 200 && text.starts_with("<svg"), "{status} {}", &text[..80.min(text.len())]);
    }
}
