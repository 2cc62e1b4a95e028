//! Tables as readers and programs get them.

use outlast_report::table::{Cell, Charset, Column, Table, TextStyle, Tone};
use outlast_report::unit::Unit;

fn comparison() -> Table {
    let mut table = Table::new([
        Column::text("run", "Run"),
        Column::text("completed", "Completed"),
        Column::quantity("elapsed_s", "Time", Unit::Seconds),
        Column::quantity("utilisation", "Utilisation", Unit::Share),
        Column::quantity("resume_worst_s", "Worst resume", Unit::Seconds),
        Column::quantity("timeouts", "Timeouts", Unit::Count),
        Column::fixed("repeat", "Per run", 1),
    ])
    .titled("20 MB over a link that is up a fifth of the time");
    table.push([
        Cell::from("plain TCP"),
        Cell::from(false).tone(Tone::Bad),
        Cell::missing(),
        Cell::from(0.081),
        Cell::from(28.4),
        Cell::from(31u64),
        Cell::from(3.1),
    ]);
    table.push([
        Cell::from("with hold"),
        Cell::from(true).tone(Tone::Good),
        Cell::from(33.25),
        Cell::from(0.963),
        Cell::from(0.047),
        Cell::from(4u64),
        Cell::from(0.4),
    ]);
    table.note("Utilisation is the share of connected time that was used.");
    table
}

#[test]
fn a_terminal_gets_aligned_columns() {
    insta::assert_snapshot!(comparison().to_text(&TextStyle::default()), @r#"
    20 MB over a link that is up a fifth of the time
    Run        Completed    Time  Utilisation  Worst resume  Timeouts  Per run
    ─────────  ─────────  ──────  ───────────  ────────────  ────────  ───────
    plain TCP  no              –        8.1 %        28.4 s        31      3.1
    with hold  yes        33.2 s       96.3 %       47.0 ms         4      0.4
    Utilisation is the share of connected time that was used.
    "#);
}

#[test]
fn a_dumb_terminal_gets_ascii_only() {
    let style = TextStyle {
        charset: Charset::Ascii,
        ..TextStyle::default()
    };
    let mut table = comparison();
    table.note("≤ 5 µs ± 1 × “x” – 日本");
    let text = table.to_text(&style);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text, @r#"
    20 MB over a link that is up a fifth of the time
    Run        Completed    Time  Utilisation  Worst resume  Timeouts  Per run
    ---------  ---------  ------  -----------  ------------  --------  -------
    plain TCP  no              -        8.1 %        28.4 s        31      3.1
    with hold  yes        33.2 s       96.3 %       47.0 ms         4      0.4
    Utilisation is the share of connected time that was used.
    <= 5 us +- 1 x "x" - ??
    "#);
}

#[test]
fn a_narrow_terminal_wraps_words_but_no_numbers() {
    let mut table = Table::new([
        Column::text("statement", "Statement"),
        Column::quantity("measured", "Measured on this kernel", Unit::Share),
        Column::text("why", "Why"),
    ]);
    table.push([
        Cell::from("At 90 % availability unaided TCP takes 50 % longer than the optimum."),
        Cell::from(0.125),
        Cell::from("A modern sender keeps its window over short outages."),
    ]);
    let style = TextStyle {
        width: Some(60),
        ..TextStyle::default()
    };
    let text = table.to_text(&style);
    for line in text.lines() {
        assert!(line.chars().count() <= 60, "{line:?} is too wide");
    }
    insta::assert_snapshot!(text, @r#"
                           Measured on this
    Statement                        kernel  Why
    ───────────────────  ──────────────────  ───────────────────
    At 90 %                          12.5 %  A modern sender
    availability                             keeps its window
    unaided TCP takes                        over short outages.
    50 % longer than
    the optimum.
    "#);
}

#[test]
fn a_terminal_too_narrow_for_the_numbers_loses_none_of_them() {
    let style = TextStyle {
        width: Some(10),
        ..TextStyle::default()
    };
    let text = comparison().to_text(&style);
    for number in ["33.2 s", "96.3 %", "47.0 ms", "28.4 s"] {
        assert!(text.contains(number), "{number} is missing:\n{text}");
    }
}

#[test]
fn colour_goes_around_the_words_and_not_around_the_gaps() {
    let paint = |tone: Tone, text: &str| format!("<{tone:?} {text}>");
    let style = TextStyle {
        paint: &paint,
        ..TextStyle::default()
    };
    let mut table = Table::new([
        Column::text("run", "Run"),
        Column::quantity("time_s", "Time", Unit::Seconds),
    ]);
    table.push([Cell::from("plain"), Cell::from(7.1).tone(Tone::Bad)]);
    insta::assert_snapshot!(table.to_text(&style), @r#"
    <Heading Run>      <Heading Time>
    ─────  ──────
    <Plain plain>  <Bad 7.10 s>
    "#);
}

#[test]
fn wide_characters_keep_the_columns_aligned() {
    let mut table = Table::new([
        Column::text("name", "Name"),
        Column::quantity("n", "N", Unit::Count),
    ]);
    table.push([Cell::from("日本"), Cell::from(1u64)]);
    table.push([Cell::from("e\u{301}te\u{301}"), Cell::from(22u64)]);
    insta::assert_snapshot!(table.to_text(&TextStyle::default()), @r#"
    Name   N
    ────  ──
    日本   1
    été   22
    "#);
}

#[test]
fn control_characters_reach_neither_terminal_nor_page() {
    let mut table = Table::new([Column::text("name", "Name")]);
    table.push([Cell::from("\u{1b}[31mred\r\u{7}\0")]);
    for output in [
        table.to_text(&TextStyle::default()),
        table.to_markdown(),
        table.to_html(),
    ] {
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!output.contains(is_control), "{output:?}");
    }
}

#[test]
fn markdown_is_aligned_and_escaped() {
    let mut table = comparison();
    table.push([
        Cell::from("a|b *c* snake_case _d_ <i>"),
        Cell::missing(),
        Cell::missing(),
        Cell::missing(),
        Cell::from(f64::INFINITY),
        Cell::missing(),
        Cell::missing(),
    ]);
    insta::assert_snapshot!(table.to_markdown(), @r#"
    **20 MB over a link that is up a fifth of the time**

    | Run                              | Completed |   Time | Utilisation | Worst resume | Timeouts | Per run |
    | -------------------------------- | --------- | -----: | ----------: | -----------: | -------: | ------: |
    | plain TCP                        | no        |      – |       8.1 % |       28.4 s |       31 |     3.1 |
    | with hold                        | yes       | 33.2 s |      96.3 % |      47.0 ms |        4 |     0.4 |
    | a\|b \*c\* snake_case \_d\_ \<i> | –         |      – |           – |          ∞ s |        – |       – |

    - Utilisation is the share of connected time that was used.
    "#);
}

#[test]
fn html_names_rows_and_columns_for_screen_readers() {
    insta::assert_snapshot!(comparison().to_html(), @r#"
    <div class="scroll"><table>
    <caption>20 MB over a link that is up a fifth of the time</caption>
    <thead><tr><th scope="col">Run</th><th scope="col">Completed</th><th scope="col" class="number">Time</th><th scope="col" class="number">Utilisation</th><th scope="col" class="number">Worst resume</th><th scope="col" class="number">Timeouts</th><th scope="col" class="number">Per run</th></tr></thead>
    <tbody>
    <tr><th scope="row">plain TCP</th><td class="bad">no</td><td class="number">–</td><td class="number">8.1 %</td><td class="number">28.4 s</td><td class="number">31</td><td class="number">3.1</td></tr>
    <tr><th scope="row">with hold</th><td class="good">yes</td><td class="number">33.2 s</td><td class="number">96.3 %</td><td class="number">47.0 ms</td><td class="number">4</td><td class="number">0.4</td></tr>
    </tbody>
    </table></div>
    <ul class="notes">
    <li>Utilisation is the share of connected time that was used.</li>
    </ul>
    "#);
}

#[test]
fn csv_keeps_every_digit_and_quotes_what_needs_it() {
    let mut table = comparison();
    table.push([
        Cell::from("a, \"b\"\nc"),
        Cell::missing(),
        Cell::from(1.0 / 3.0),
        Cell::missing(),
        Cell::missing(),
        Cell::from(u64::MAX),
        Cell::missing(),
    ]);
    insta::assert_snapshot!(table.to_csv(), @r#"
    run,completed,elapsed_s,utilisation,resume_worst_s,timeouts,repeat
    plain TCP,false,,0.081,28.4,31,3.1
    with hold,true,33.25,0.963,0.047,4,0.4
    "a, ""b""
    c",,0.3333333333333333,,,18446744073709551615,
    "#);
}

#[test]
fn json_tells_what_its_columns_mean() {
    let mut table = comparison();
    table.push([
        Cell::from("never"),
        Cell::from(false),
        Cell::from(f64::INFINITY),
        Cell::missing(),
        Cell::from(f64::NAN),
        Cell::from(0u64),
        Cell::missing(),
    ]);
    insta::assert_snapshot!(table.to_json(), @r#"
    {
      "title": "20 MB over a link that is up a fifth of the time",
      "columns": [
        {
          "key": "run",
          "heading": "Run",
          "unit": ""
        },
        {
          "key": "completed",
          "heading": "Completed",
          "unit": ""
        },
        {
          "key": "elapsed_s",
          "heading": "Time",
          "unit": "s"
        },
        {
          "key": "utilisation",
          "heading": "Utilisation",
          "unit": ""
        },
        {
          "key": "resume_worst_s",
          "heading": "Worst resume",
          "unit": "s"
        },
        {
          "key": "timeouts",
          "heading": "Timeouts",
          "unit": ""
        },
        {
          "key": "repeat",
          "heading": "Per run",
          "unit": ""
        }
      ],
      "rows": [
        {
          "run": "plain TCP",
          "completed": false,
          "elapsed_s": null,
          "utilisation": 0.081,
          "resume_worst_s": 28.4,
          "timeouts": 31,
          "repeat": 3.1
        },
        {
          "run": "with hold",
          "completed": true,
          "elapsed_s": 33.25,
          "utilisation": 0.963,
          "resume_worst_s": 0.047,
          "timeouts": 4,
          "repeat": 0.4
        },
        {
          "run": "never",
          "completed": false,
          "elapsed_s": null,
          "utilisation": null,
          "resume_worst_s": null,
          "timeouts": 0,
          "repeat": null
        }
      ],
      "notes": [
        "Utilisation is the share of connected time that was used."
      ]
    }
    "#);
}

#[test]
fn the_same_table_in_json_and_csv_has_the_same_values() {
    let table = comparison();
    let json: serde_json::Value = serde_json::from_str(&table.to_json()).expect("it is JSON");
    let csv = table.to_csv();
    let mut lines = csv.lines();
    let keys: Vec<&str> = lines.next().expect("a line of keys").split(',').collect();
    for (line, row) in lines.zip(json["rows"].as_array().expect("rows")) {
        for (key, field) in keys.iter().zip(line.split(',')) {
            let value = match &row[key] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(value, field, "{key}");
        }
    }
}

#[test]
#[should_panic(expected = "a row has one cell per column")]
fn a_short_row_is_refused() {
    comparison().push([Cell::from("alone")]);
}

#[test]
#[should_panic(expected = "two columns have the key \"a\"")]
fn a_key_names_one_column() {
    let _ = Table::new([Column::text("a", "A"), Column::text("a", "B")]);
}
