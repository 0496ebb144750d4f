//! Text for readers: the papers by their names, units by their signs, names of the command in their own type.

/// A paper whose measurements the laboratory repeats.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// As results and documents refer to it, and the anchor in the bibliography.
    pub key: &'static str,
    /// Authors and year.
    pub short: &'static str,
    /// All authors.
    pub authors: &'static str,
    /// The full title.
    pub title: &'static str,
    /// Where it appeared; empty if it does not say.
    pub appeared: &'static str,
}

/// The bibliography of the page; `docs/explanation/bibliography.md` has the same.
pub const PAPERS: [Paper; 5] = [
    Paper {
        key: "P0",
        short: "Schmidt et al. 2002",
        authors: "Douglas C. Schmidt, Mayur Deshpande, Carlos O'Ryan",
        title: "Operating System Performance in Support of Real-time Middleware",
        appeared: "7th IEEE International Workshop on Object-oriented Real-time Dependable Systems, 2002",
    },
    Paper {
        key: "P1",
        short: "Schmidt et al. 1998",
        authors: "Douglas C. Schmidt, Sumedh Mungee, Sergio Flores-Gaitan, Aniruddha Gokhale",
        title: "Alleviating Priority Inversion and Non-determinism in Real-time CORBA ORB Core Architectures",
        appeared: "4th IEEE Real-time Technology and Applications Symposium, 1998",
    },
    Paper {
        key: "P2",
        short: "Levine et al. 1999",
        authors: "David L. Levine, Sergio Flores-Gaitan, Christopher D. Gill, Douglas C. Schmidt",
        title: "Measuring OS Support for Real-time CORBA ORBs",
        appeared: "4th International Workshop on Object-oriented Real-time Dependable Systems, 1999",
    },
    Paper {
        key: "P3",
        short: "Wang et al. 2002",
        authors: "Shige Wang, Sharath Kodase, Kang G. Shin, Daniel L. Kiskis",
        title: "Measurement of OS Services and Its Application to Performance Modeling and Analysis of Integrated Embedded Software",
        appeared: "8th IEEE Real-time and Embedded Technology and Applications Symposium, 2002",
    },
    Paper {
        key: "P4",
        short: "Traut",
        authors: "Manuel Traut",
        title: "Real-time CORBA performance on Linux-RT_PREEMPT",
        appeared: "",
    },
];

/// Text for a plot or a list: a paper's key becomes its authors, `us` becomes µs.
pub(crate) fn plain(text: &str) -> String {
    tokens(text).map(readable).collect()
}

/// Text as HTML: markup is shown as it stands, a paper's key becomes a link to the bibliography, `us` becomes µs, and what
/// stands between backquotes becomes code.
pub(crate) fn html(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 64);
    let mut is_code = false;
    for token in tokens(text) {
        match (token, paper(token)) {
            ("`", _) => {
                html.push_str(if is_code { "</code>" } else { "<code>" });
                is_code = !is_code;
            }
            ("<", _) => html.push_str("&lt;"),
            (">", _) => html.push_str("&gt;"),
            ("&", _) => html.push_str("&amp;"),
            ("\"", _) => html.push_str("&quot;"),
            _ if is_code => html.push_str(token),
            (
                _,
                Some(Paper {
                    key, short, title, ..
                }),
            ) => {
                html.push_str(&format!("<a href=\"#{key}\" title=\"{title}\">{short}</a>"));
            }
            _ => html.push_str(readable(token)),
        }
    }
    if is_code {
        html.push_str("</code>");
    }
    html
}

/// The words of a text, and each character between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_of_word = |character: char| character.is_alphanumeric() || character == '_';
    text.split_inclusive(move |character| !is_of_word(character))
        .flat_map(move |part| {
            let end = part.trim_end_matches(move |character| !is_of_word(character));
            let (word, between) = part.split_at(end.len());
            [word, between]
        })
        .filter(|token| !token.is_empty())
}

fn readable(token: &str) -> &str {
    match token {
        "us" => "µs",
        other => paper(other).map_or(other, |paper| paper.short),
    }
}

fn paper(key: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|paper| paper.key == key)
}

/// The name of a parameter or a label in words: `paced_seconds` is `paced seconds`.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bibliography_of_the_documentation_is_the_same() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/explanation/bibliography.md"
        );
        let page = std::fs::read_to_string(path).expect("the page is there");
        let page = page.replace('\n', " ");
        for paper in &PAPERS {
            let entry = format!(
                "## {}  {}: *{}*. {}",
                paper.key, paper.authors, paper.title, paper.appeared
            );
            assert!(page.contains(&entry), "{entry}");
        }
    }

    #[test]
    fn a_reader_sees_names_and_signs() {
        let shown = html("P1 Figure 7: 3.5 us, `--full` & <b>: bus, P12");
        assert!(
            shown.starts_with("<a href=\"#P1\" title=\"Alleviating"),
            "{shown}"
        );
        assert!(
            shown.ends_with("Schmidt et al. 1998</a> Figure 7: 3.5 µs, <code>--full</code> &amp; &lt;b&gt;: bus, P12"),
            "{shown}"
        );
    }

    #[test]
    fn a_plot_has_the_same_names_and_signs() {
        assert_eq!(
            plain("us, median (P0 Table 1)"),
            "µs, median (Schmidt et al. 2002 Table 1)"
        );
    }

    #[test]
    fn code_is_left_as_it_is_and_is_always_closed() {
        assert_eq!(html("`P1 us"), "<code>P1 us</code>");
    }
}
