//! The page's HTML.

use super::{Block, Highlight, Page, Provenance, Section};
use crate::judgement::{self, Tally};
use crate::markup::{escape, literal, prose};
use crate::plot;
use crate::table::Tone;

const STYLE: &str = include_str!("style.css");

/// Forbids the browser to fetch anything or to run anything; only the page's own styles count.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn html(page: &Page) -> String {
    let title = escape(&page.title);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n",
        plot::STYLE
    );
    if let Some(subtitle) = &page.subtitle {
        html.push_str(&format!("<p class=\"subtitle\">{}</p>\n", prose(subtitle)));
    }
    highlights(&mut html, &page.highlights);
    html.push_str("</header>\n");
    contents(&mut html, &page.sections);
    html.push_str("<main>\n");
    let mut figures = 0;
    for (i, section) in page.sections.iter().enumerate() {
        let number = i + 1;
        html.push_str(&format!("<section id=\"section-{number}\">\n"));
        html.push_str(&format!("<h2>{}</h2>\n", prose(&section.heading)));
        for block in &section.blocks {
            write_block(&mut html, block, &mut figures);
        }
        html.push_str("</section>\n");
    }
    html.push_str("</main>\n");
    provenance(&mut html, &page.provenance);
    html.push_str("</body>\n</html>\n");
    html
}

fn highlights(html: &mut String, highlights: &[Highlight]) {
    if highlights.is_empty() {
        return;
    }
    html.push_str("<ul class=\"highlights\">\n");
    for Highlight {
        label,
        value,
        note,
        tone,
    } in highlights
    {
        let class = match tone {
            Tone::Good => " class=\"good\"",
            Tone::Bad => " class=\"bad\"",
            Tone::Warning => " class=\"warning\"",
            Tone::Plain | Tone::Heading | Tone::Weak => "",
        };
        html.push_str(&format!(
            "<li{class}><span class=\"label\">{}</span> <strong>{}</strong> \
             <span class=\"note\">{}</span></li>\n",
            literal(label),
            literal(value),
            literal(note)
        ));
    }
    html.push_str("</ul>\n");
}

/// A list of more sections is set in columns.
const LONG: usize = 8;

/// A list of the sections, where there are enough of them to get lost in.
fn contents(html: &mut String, sections: &[Section]) {
    if sections.len() < 3 {
        return;
    }
    let class = if sections.len() > LONG {
        " class=\"long\""
    } else {
        ""
    };
    html.push_str(&format!("<nav aria-label=\"Contents\"{class}>\n<ol>\n"));
    for (i, section) in sections.iter().enumerate() {
        let (number, heading) = (i + 1, prose(&section.heading));
        html.push_str(&format!(
            "<li><a href=\"#section-{number}\">{heading}</a></li>\n"
        ));
    }
    html.push_str("</ol>\n</nav>\n");
}

fn write_block(html: &mut String, block: &Block, figures: &mut usize) {
    match block {
        Block::Subheading(text) => html.push_str(&format!("<h3>{}</h3>\n", prose(text))),
        Block::Paragraph(text) => html.push_str(&format!("<p>{}</p>\n", prose(text))),
        Block::Listing { summary, text } => html.push_str(&format!(
            "<details>\n<summary>{}</summary>\n<pre>{}</pre>\n</details>\n",
            prose(summary),
            escape(text)
        )),
        Block::Table(table) => html.push_str(&table.to_html()),
        Block::Figure { figure, caption } => {
            *figures += 1;
            html.push_str(&format!(
                "<figure id=\"figure-{figures}\">\n{}<figcaption><b>Figure {figures}.</b> \
                 {}</figcaption>\n</figure>\n",
                figure.to_inline_svg(),
                prose(caption)
            ));
        }
        Block::Claims(claims) => {
            let tally = Tally::of(claims);
            html.push_str(&format!("<p>{}</p>\n", tally_in_words(tally)));
            html.push_str("<div class=\"claims\">\n");
            html.push_str(&judgement::table(claims).to_html());
            html.push_str("</div>\n");
        }
    }
}

fn tally_in_words(tally: Tally) -> String {
    let Tally {
        reproduced,
        differs,
        not_measured,
    } = tally;
    let mut words = format!("{reproduced} of {} statements reproduced", tally.all());
    if differs > 0 {
        words.push_str(&format!(
            ", {differs} {}",
            if differs == 1 { "differs" } else { "differ" }
        ));
    }
    if not_measured > 0 {
        words.push_str(&format!(", {not_measured} not measured"));
    }
    words.push_str(". The tolerances were set before measuring.");
    words
}

fn provenance(html: &mut String, provenance: &Provenance) {
    let Provenance {
        version,
        date,
        kernel,
        congestion_control,
        seed,
        command,
        more,
    } = provenance;
    html.push_str("<footer>\n<h2>How this was measured</h2>\n<dl>\n");
    let mut entry = |name: &str, value: &str, is_code: bool| {
        if value.is_empty() {
            return;
        }
        let (name, value) = (escape(name), escape(value));
        let value = if is_code {
            format!("<code>{value}</code>")
        } else {
            value
        };
        html.push_str(&format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
    };
    entry("Outlast", version, false);
    entry("Date", date, false);
    entry("Kernel", kernel, false);
    entry("Congestion control", congestion_control, false);
    entry("Seed", &seed.to_string(), false);
    for (name, value) in more {
        entry(name, value, false);
    }
    entry("Again with", command, true);
    html.push_str("</dl>\n</footer>\n");
}
