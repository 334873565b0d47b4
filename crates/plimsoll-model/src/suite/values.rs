//! Reads the values of a document into any type that serde can read, with a location for every
//! mistake.
//!
//! The type gives the keys, their defaults and the names of a choice. Its JSON Schema gives the
//! bounds of numbers.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value as Json;
use toml::Value;
use toml::de::DeValue;

use super::document::{Document, Location, SuiteError, Written, nearest};

/// Reads the value at a location. `schema` is that of the type.
pub(super) fn read<'de, T: Deserialize<'de>>(
    document: &Document<'_>,
    (written, location): (Written<'_>, Location),
    schema: &Json,
) -> Result<T, SuiteError> {
    let schema = Schema { root: schema, here: schema }.resolved();
    let node = Node { document, written, location, schema, in_list: false };
    node.locate(T::deserialize(&node)).map_err(|mistake| match mistake {
        Mistake::Located(error) => *error,
        other => document.error(&node.location, other.to_string()),
    })
}

/// A value and its location.
struct Node<'a> {
    document: &'a Document<'a>,
    written: Written<'a>,
    location: Location,
    schema: Schema<'a>,
    /// One of a list, whose path it has.
    in_list: bool,
}

/// Schema of a value.
#[derive(Clone, Copy)]
struct Schema<'a> {
    root: &'a Json,
    here: &'a Json,
}

impl<'a> Schema<'a> {
    /// Where a reference leads to. An optional table is `anyOf` itself and null.
    fn resolved(mut self) -> Self {
        loop {
            let table = self.here["anyOf"].as_array().and_then(|any| any.first());
            let next = match self.here["$ref"].as_str() {
                Some(path) => self.root.pointer(path.trim_start_matches('#')),
                None => table,
            };
            match next {
                Some(next) => self.here = next,
                None => return self,
            }
        }
    }

    fn below(self, here: Option<&'a Json>) -> Self {
        Schema { root: self.root, here: here.unwrap_or(&Json::Null) }.resolved()
    }

    /// Schema of a key.
    fn child(self, key: &str) -> Self {
        let named = self.here["properties"].get(key);
        self.below(named.or_else(|| self.here.get("additionalProperties")))
    }

    /// The writer of the suite chooses the keys. Where they lead to tables, a dot ends a key.
    fn names_are_free(self) -> bool {
        let is_table = |schema: Self| schema.here.get("properties").is_some();
        !is_table(self) && !is_table(self.child(""))
    }

    /// Keys that must be there, also where the type has a value for them.
    fn required(self) -> impl Iterator<Item = &'a str> {
        self.here["required"].as_array().into_iter().flatten().filter_map(Json::as_str)
    }

    /// The names of a choice, for a message.
    fn choices(self) -> Vec<&'a str> {
        let listed = self.here["enum"].as_array().into_iter().flatten();
        let described = self.here["oneOf"].as_array().into_iter().flatten();
        listed.chain(described.map(|one| &one["const"])).filter_map(Json::as_str).collect()
    }
}

/// A mistake, first without its location.
#[derive(Debug, thiserror::Error)]
enum Mistake {
    /// Another kind of value was expected.
    #[error("not {0}")]
    Expected(String),
    /// No key or choice has that name; these have.
    #[error("{0:?} is not known")]
    Unknown(String, &'static [&'static str]),
    /// The key must be there.
    #[error("`{0}` is missing")]
    Missing(String),
    /// As text.
    #[error("{0}")]
    Other(String),
    /// With its location.
    #[error("{0}")]
    Located(Box<SuiteError>),
}

impl de::Error for Mistake {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Expected(describe_expected(&expected.to_string()))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Expected(describe_expected(&expected.to_string()))
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::Expected(describe_expected(&expected.to_string()))
    }

    fn unknown_field(name: &str, expected: &'static [&'static str]) -> Self {
        Self::Unknown(name.to_owned(), expected)
    }

    fn unknown_variant(name: &str, expected: &'static [&'static str]) -> Self {
        Self::Unknown(name.to_owned(), expected)
    }

    fn missing_field(key: &'static str) -> Self {
        Self::Missing(key.to_owned())
    }
}

/// serde's name of a kind of value, in terms of suite files.
fn describe_expected(expected: &str) -> String {
    match expected {
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        other => other,
    }
    .to_owned()
}

impl Node<'_> {
    /// Gives a mistake the location of this value, where it has none.
    fn locate<T>(&self, result: Result<T, Mistake>) -> Result<T, Mistake> {
        result.map_err(|mistake| {
            let path = &self.location.path;
            let verb = self.verb();
            let (message, help) = match mistake {
                Mistake::Located(_) => return mistake,
                Mistake::Expected(what) => {
                    (format!("`{path}` {verb} {}, not {what}", self.text()), None)
                }
                Mistake::Unknown(name, names) => {
                    let help = suggestion(&name, names, '"', "write one of");
                    (format!("`{path}` {verb} \"{name}\""), Some(help))
                }
                Mistake::Missing(key) => {
                    let choices = self.schema.child(&key).choices();
                    let help = format!("write one of: {}", choices.join(", "));
                    let help = Some(help).filter(|_| !choices.is_empty());
                    (format!("`{}` is missing", self.location.below(&key)), help)
                }
                Mistake::Other(message) => (format!("`{path}`: {message}"), None),
            };
            let mut error = self.document.error(&self.location, message);
            error.help = help;
            Mistake::Located(Box::new(error))
        })
    }

    /// Between the path and the value.
    fn verb(&self) -> &'static str {
        if self.in_list { "holds" } else { "is" }
    }

    /// As TOML writes it.
    fn text(&self) -> String {
        match self.written {
            Written::Given(value) => value.to_string(),
            Written::InFile(value) => plain(value).map_or_else(String::new, |v| v.to_string()),
            Written::Root(_) | Written::Nothing => "a table".to_owned(),
        }
    }

    /// The value without its location.
    fn value(&self) -> Result<Value, Mistake> {
        let value = match self.written {
            Written::Given(value) => Some(value.clone()),
            Written::InFile(value) => plain(value),
            Written::Root(_) | Written::Nothing => None,
        };
        value.ok_or_else(|| Mistake::Expected("a whole number".to_owned()))
    }

    fn is_table(&self) -> bool {
        match self.written {
            Written::Given(value) => value.is_table(),
            Written::InFile(value) => value.is_table(),
            Written::Root(_) | Written::Nothing => true,
        }
    }

    /// Compares a number with the bounds of the schema.
    fn check_bounds(&self, number: f64) -> Result<(), Mistake> {
        let bound = |name: &str| self.schema.here[name].as_f64();
        let (min, max) = (bound("minimum"), bound("maximum"));
        if min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max) {
            return Ok(());
        }
        let message = format!("`{}` {} {number}", self.location.path, self.verb());
        let help = match (min, max) {
            (Some(min), Some(max)) => format!("it must be from {min} to {max}"),
            (Some(min), None) => format!("it must be {min} or more"),
            (None, max) => format!("it must be {} or less", max.unwrap_or_default()),
        };
        let error = self.document.error(&self.location, message).with_help(help);
        Err(Mistake::Located(Box::new(error)))
    }
}

/// What to do about an unknown name.
fn suggestion(name: &str, names: &[&str], quote: char, otherwise: &str) -> String {
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean {quote}{near}{quote}?"),
        None => format!("{otherwise}: {}", names.join(", ")),
    }
}

impl<'de> Deserializer<'de> for &Node<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        if self.is_table() {
            return self.deserialize_map(visitor);
        }
        match self.value()? {
            Value::Integer(number) => {
                self.check_bounds(number as f64)?;
                visitor.visit_i64(number)
            }
            Value::Float(number) if number.is_finite() => {
                self.check_bounds(number)?;
                visitor.visit_f64(number)
            }
            Value::Float(_) => Err(Mistake::Expected("a number".to_owned())),
            Value::String(text) => visitor.visit_string(text),
            Value::Boolean(flag) => visitor.visit_bool(flag),
            Value::Datetime(date) => visitor.visit_string(date.to_string()),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Table(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        if !self.is_table() {
            let message = format!("`{}` is a table", self.location.path);
            return Err(Mistake::Located(Box::new(self.document.error(&self.location, message))));
        }
        let names_are_free = self.schema.names_are_free();
        let keys = self.document.keys((self.written, &self.location), names_are_free);
        let missing = self.schema.required().find(|key| !keys.contains_key(*key));
        let value =
            visitor.visit_map(Keys { node: self, keys: keys.into_iter(), next: String::new() })?;
        missing.map_or(Ok(value), |key| Err(Mistake::Missing(key.to_owned())))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.deserialize_map(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let schema = self.schema.below(self.schema.here.get("items"));
        let item = |written, span| {
            let location = Location { path: self.location.path.clone(), span };
            Node { document: self.document, written, location, schema, in_list: true }
        };
        let items: Vec<Node<'_>> = match self.written {
            Written::InFile(DeValue::Array(items)) => {
                items.iter().map(|i| item(Written::InFile(i.get_ref()), Some(i.span()))).collect()
            }
            Written::Given(Value::Array(items)) => {
                items.iter().map(|i| item(Written::Given(i), None)).collect()
            }
            _ => {
                let of = match schema.here["type"].as_str() {
                    Some("string") => " of strings",
                    Some("number") => " of numbers",
                    Some("integer") => " of whole numbers",
                    _ => "",
                };
                return Err(Mistake::Expected(format!("a list{of}")));
            }
        };
        visitor.visit_seq(Items(items.into_iter()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    /// A choice that looks like a number, such as the dialect 2.1, needs no quotes.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match self.value()? {
            Value::String(word) => visitor.visit_enum(StrDeserializer::new(&word)),
            other => visitor.visit_enum(StrDeserializer::new(&other.to_string())),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct identifier
    }
}

/// The keys of a table, each followed by its value.
struct Keys<'n, 'a, I> {
    node: &'n Node<'a>,
    keys: I,
    next: String,
}

impl<'de, I: Iterator<Item = (String, Location)>> MapAccess<'de> for Keys<'_, '_, I> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mistake> {
        let Some((key, location)) = self.keys.next() else { return Ok(None) };
        let name = seed.deserialize(StrDeserializer::new(&key)).map_err(|mistake| {
            let Mistake::Unknown(_, names) = mistake else { return mistake };
            let help = suggestion(&key, names, '`', "known keys here");
            let message = format!("unknown key `{}`", location.path);
            let error = self.node.document.error(&location, message).with_help(help);
            Mistake::Located(Box::new(error))
        })?;
        self.next = key;
        Ok(Some(name))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let Node { document, written, location, schema, .. } = self.node;
        let (written, location) = document.child((*written, location), &self.next);
        let schema = schema.child(&self.next);
        let child = Node { document, written, location, schema, in_list: false };
        child.locate(seed.deserialize(&child))
    }
}

/// The items of a list.
struct Items<I>(I);

impl<'a, 'de, I: Iterator<Item = Node<'a>>> SeqAccess<'de> for Items<I> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mistake> {
        let Some(item) = self.0.next() else { return Ok(None) };
        item.locate(seed.deserialize(&item)).map(Some)
    }
}

/// A spanned value without its spans. `None` for an integer too large to be one.
fn plain(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(s) => Value::String(s.to_string()),
        DeValue::Integer(i) => Value::Integer(i64::from_str_radix(i.as_str(), i.radix()).ok()?),
        DeValue::Float(f) => Value::Float(f.as_str().parse().ok()?),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(d) => Value::Datetime(*d),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|i| plain(i.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => Value::Table(
            table
                .iter()
                .map(|(k, v)| Some((k.get_ref().to_string(), plain(v.get_ref())?)))
                .collect::<Option<_>>()?,
        ),
    })
}
