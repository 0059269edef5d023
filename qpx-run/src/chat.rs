//! Chat templates: the bundle's own, never a guessed one.
//!
//! `chat_template.jinja` comes before the `chat_template` of `tokenizer_config.json`, as in the program that made the files. Templates are
//! Jinja as Python renders it: blocks trim their lines, and values have Python's methods.

use crate::Error;
use minijinja::{Environment, ErrorKind, Value, context, syntax::SyntaxConfig, value::Serde};
use qpx_format::{Bundle, manifest::Purpose};
use serde_json::{Map, json};

/// A template and the special tokens that it may name.
pub struct Chat {
    source: String,
    name: String,
    specials: Map<String, serde_json::Value>,
    bundle: std::path::PathBuf,
}

/// The longest template; published ones have up to some 20 KB.
const MOST_BYTES: usize = 64 << 10;
/// Steps that a template may take; a long conversation takes some tens of thousands.
const MOST_STEPS: u64 = 5_000_000;
/// Address space of the rendering thread's stack: 8 KiB for each byte of the longest template.
const STACK_BYTES: usize = MOST_BYTES << 13;

const SPECIALS: &[&str] = &[
    "bos_token",
    "eos_token",
    "unk_token",
    "pad_token",
    "sep_token",
    "cls_token",
    "mask_token",
];

impl Chat {
    /// Finds the bundle's template.
    ///
    /// # Errors
    /// [`Error::NoTemplate`]; [`Error::Attached`] for a file that can't be read.
    pub fn open(bundle: &Bundle) -> Result<Self, Error> {
        let path = || bundle.path().to_path_buf();
        let broken = |name: &str, reason: String| Error::Attached {
            bundle: path(),
            name: name.to_owned(),
            reason,
        };
        let config = match bundle.attached_named("tokenizer_config.json") {
            Some(entry) => {
                let content = bundle.attached(entry)?;
                serde_json::from_slice(&content).map_err(|e| broken(&entry.name, e.to_string()))?
            }
            None => Map::new(),
        };
        let files = &bundle.manifest().checked.attached;
        let own = files
            .iter()
            .find(|a| a.purpose == Purpose::ChatTemplate && a.name == "chat_template.jinja");
        let (name, source) = match own {
            Some(entry) => {
                let content = bundle.attached(entry)?;
                let source =
                    String::from_utf8(content).map_err(|e| broken(&entry.name, e.to_string()))?;
                (entry.name.clone(), source)
            }
            None => {
                let found = config.get("chat_template").and_then(in_config);
                let source = found.ok_or_else(|| Error::NoTemplate { bundle: path() })?;
                ("tokenizer_config.json".to_owned(), source)
            }
        };
        let special = |name: &&str| {
            let value = config.get(*name)?;
            let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
            Some(((*name).to_owned(), json!(text)))
        };
        Ok(Self {
            specials: SPECIALS.iter().filter_map(special).collect(),
            source,
            name,
            bundle: path(),
        })
    }

    /// The text of a conversation up to where the model speaks.
    ///
    /// # Errors
    /// [`Error::Template`] with what the template says or does wrong.
    pub fn render(&self, system: Option<&str>, prompt: &str) -> Result<String, Error> {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let system = system.map(|text| message("system", text));
        let messages: Vec<_> = system
            .into_iter()
            .chain([message("user", prompt)])
            .collect();
        self.render_messages(&messages)
    }

    /// The same for messages as templates take them.
    ///
    /// # Errors
    /// [`Error::Template`].
    pub fn render_messages(&self, messages: &[serde_json::Value]) -> Result<String, Error> {
        let refused = |reason: String| Error::Template {
            bundle: self.bundle.clone(),
            name: self.name.clone(),
            reason,
        };
        if self.source.len() > MOST_BYTES {
            return Err(refused(format!("it is longer than {MOST_BYTES} bytes")));
        }
        // The parser goes as deep as the text nests: a template comes from strangers, so it gets a stack that it can't exhaust.
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || self.render_here(messages))
                .map_err(|e| refused(e.to_string()))?
                .join()
                .unwrap_or_else(|_| Err(refused("it breaks the template engine".to_owned())))
        })
    }

    fn render_here(&self, messages: &[serde_json::Value]) -> Result<String, Error> {
        let failed = |e: minijinja::Error| Error::Template {
            bundle: self.bundle.clone(),
            name: self.name.clone(),
            reason: match e.detail() {
                Some(detail) => format!("{detail} (line {})", e.line().unwrap_or(0)),
                None => e.to_string(),
            },
        };
        let mut environment = Environment::new();
        environment.set_fuel(Some(MOST_STEPS));
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(failed)?);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |text: String| -> Result<String, _> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, text))
        });
        environment.add_filter(
            "tojson",
            |value: Value| -> Result<String, minijinja::Error> {
                let json = serde_json::to_value(&value).map_err(|e| {
                    minijinja::Error::new(ErrorKind::BadSerialization, e.to_string())
                })?;
                Ok(python_json(&json))
            },
        );
        environment
            .add_template("chat", &self.source)
            .map_err(failed)?;
        let template = environment.get_template("chat").map_err(failed)?;
        let specials = Value::from(Serde(&self.specials));
        template
            .render(
                context! { messages => Serde(messages), add_generation_prompt => true, ..specials },
            )
            .map_err(failed)
    }
}

fn in_config(value: &serde_json::Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let named = value.as_array()?;
    let default = named
        .iter()
        .find(|t| t.get("name").and_then(|n| n.as_str()) == Some("default"))?;
    Some(default.get("template")?.as_str()?.to_owned())
}

/// JSON as Python writes it: a space after each comma and colon.
fn python_json(value: &serde_json::Value) -> String {
    use serde_json::Value as V;
    match value {
        V::Array(list) => {
            let items: Vec<_> = list.iter().map(python_json).collect();
            format!("[{}]", items.join(", "))
        }
        V::Object(map) => {
            let items: Vec<_> = map
                .iter()
                .map(|(k, v)| format!("{}: {}", V::String(k.clone()), python_json(v)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(source: &str) -> Chat {
        Chat {
            source: source.to_owned(),
            name: "test".to_owned(),
            specials: [("bos_token".to_owned(), json!("<s>"))]
                .into_iter()
                .collect(),
            bundle: "x.qpx".into(),
        }
    }

    #[test]
    fn templates_render_as_in_python() {
        let cases = [
            (
                "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m.content.strip() }}{% endfor %}",
                "<s>[user]hi",
            ),
            (
                "{% if add_generation_prompt %}\nyes\n{% endif %}\n",
                "yes\n",
            ),
            (
                "{{ messages[0] | tojson }}",
                r#"{"role": "user", "content": " hi <'&'> "}"#,
            ),
            (
                "{%- set ns = namespace(n=0) %}{%- for m in messages[::-1] %}{%- set ns.n = ns.n + 1 %}{%- endfor %}{{ ns.n }}",
                "1",
            ),
            (
                "{{ messages[0].content.split('<')[0].rstrip('\\n') }}|",
                " hi |",
            ),
        ];
        for (source, expected) in cases {
            let text = if source.contains("strip()") {
                " hi "
            } else {
                " hi <'&'> "
            };
            assert_eq!(
                chat(source).render(None, text).unwrap(),
                expected,
                "{source}"
            );
        }
    }

    #[test]
    fn a_template_that_raises_or_asks_for_the_date_fails_aloud() {
        let raises = chat("{{ raise_exception('roles must alternate') }}").render(None, "x");
        assert!(
            raises
                .unwrap_err()
                .to_string()
                .contains("roles must alternate")
        );
        let date = chat("{{ strftime_now('%Y') }}").render(None, "x");
        assert!(date.unwrap_err().to_string().contains("strftime_now"));
        assert!(chat("{% if %}").render(None, "x").is_err());
    }
}
