//! What the tables hold.

use crate::fixture::{Place, plan};
use insta::assert_snapshot;
use outlast_report::table::TextStyle;
use outlast_sweep::output::Detail;
use outlast_sweep::{CellSummary, Datum, Width};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const SWEEP: &str = "[sweep]\nrepeat = 3\n\
    [sweep.grid]\n\"outlast.gateway\" = [\"none\", \"hold\"]\n\"link.rate\" = [\"5 Mbit/s\", \"unlimited\"]\n\
    \"stack.sack\" = [true, false]\n\
    [sweep.sample]\n\"link.delay\" = { distribution = \"log-uniform\", from = \"1 ms\", to = \"50 ms\" }\n";

#[test]
fn tables_do_not_depend_on_the_number_of_threads() {
    let plan = Arc::new(plan(SWEEP));
    let tables = [1, 2, 7].map(|threads| {
        let place = Place::new();
        assert_eq!(place.complete(&plan, threads), 24);
        place.tables()
    });
    for table in tables[0].keys() {
        assert!(
            tables[0][table] == tables[1][table],
            "{table}: 1 and 2 threads"
        );
        assert!(
            tables[0][table] == tables[2][table],
            "{table}: 1 and 7 threads"
        );
    }
}

#[test]
fn rows_are_in_the_order_of_the_grid() {
    let place = Place::new();
    place.complete(&Arc::new(plan(SWEEP)), 3);
    let csv = place.csv("runs.csv");
    let rows = csv.lines().skip(1).map(|line| {
        let mut fields = line.split(',');
        let mut next = || fields.next().and_then(|field| field.parse::<u64>().ok());
        (next().expect("a cell"), next().expect("a repetition"))
    });
    let expected = (1..=8).flat_map(|cell| (1..=3).map(move |repetition| (cell, repetition)));
    assert!(rows.eq(expected));
}

/// The table at `path` as `parquet` reads it, in the words of the CSV.
fn parquet_as_csv(path: &Path) -> String {
    let file = File::open(path).expect("the table was written");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<_> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(names).expect("memory");
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row");
        let fields = row.get_column_iter().map(|(_, field)| match field {
            Field::Null => String::new(),
            Field::Bool(flag) => flag.to_string(),
            Field::ULong(number) => number.to_string(),
            Field::Double(number) => number.to_string(),
            Field::Str(text) => text.clone(),
            other => panic!("{other:?} is of no kind of ours"),
        });
        csv.write_record(fields).expect("memory");
    }
    String::from_utf8(csv.into_inner().expect("memory")).expect("texts")
}

#[test]
fn parquet_says_what_csv_says() {
    let place = Place::new();
    place.complete(&Arc::new(plan(SWEEP)), 2);
    for name in ["runs", "cells", "outages"] {
        let parquet = parquet_as_csv(&place.path().join(format!("{name}.parquet")));
        assert_eq!(parquet, place.csv(&format!("{name}.csv")), "{name}");
        assert!(parquet.lines().count() > 8, "{name}");
    }
}

/// The numbers are the simulator's business; what is said of them is not.
#[test]
fn rows_say_what_the_runs_came_to() {
    let place = Place::new();
    let plan = Arc::new(plan(SWEEP));
    place.complete(&plan, 2);
    let mut runs = csv::Reader::from_path(place.path().join("runs.csv")).expect("CSV");
    let names = runs.headers().expect("names").clone();
    let mut outages = 0;
    for (row, index) in runs.records().zip(0..) {
        let (row, run) = (row.expect("a row"), plan.run(index));
        let result = plan.carry_out(run).expect("sound");
        let field = |name: &str| {
            let column = names
                .iter()
                .position(|known| known == name)
                .expect("a column");
            row[column].to_owned()
        };
        assert_eq!(field("outlast.gateway"), result.settings.gateway.name());
        assert_eq!(field("stack.sack"), result.settings.tcp.sack.to_string());
        assert_eq!(field("elapsed_s"), result.elapsed_s.to_string());
        assert_eq!(field("seed"), result.settings.seed.to_string());
        assert_eq!(field("outages"), result.outages.len().to_string());
        // One way there and one back.
        let delay: f64 = field("link.delay_s").parse().expect("a number");
        assert!((2.0 * delay - result.settings.round_trip_s).abs() < 1e-12);
        let resumes: Vec<f64> = outlast_report::results::resume_times(&result)
            .flatten()
            .collect();
        let longest = resumes.iter().copied().reduce(f64::max);
        assert_eq!(
            field("resume_max_s"),
            longest.map_or_else(String::new, |s| s.to_string())
        );
        outages += result.outages.len();
    }
    assert!(outages > 0, "runs without outages show nothing");
    assert_eq!(place.csv("outages.csv").lines().count(), 1 + outages);
}

#[test]
fn connections_have_a_table_of_their_own() {
    let flow = "[[flows]]\nkind = \"bulk\"\nbytes = \"50 kB\"\ndirection = \"upload\"\ncount = 2\n";
    let plan = Arc::new(plan(&format!(
        "{flow}[sweep.grid]\nflows.1.bytes = [\"40 kB\", \"60 kB\"]\n"
    )));
    let place = Place::new();
    place.complete(&plan, 2);
    let path = place.path().join("flows.csv");
    let mut flows = csv::Reader::from_path(path).expect("CSV");
    let names = flows.headers().expect("names").clone();
    let columns = [
        "cell",
        "flows.1.bytes",
        "flow",
        "direction",
        "bytes_received",
    ];
    let columns = columns.map(|name| names.iter().position(|known| known == name).expect("there"));
    let rows: Vec<_> = flows
        .records()
        .map(|row| {
            let row = row.expect("a row");
            columns.map(|column| row[column].to_owned()).join(" ")
        })
        .collect();
    let expected = [
        "1 40000 1 download 300000",
        "1 40000 2 upload 40000",
        "1 40000 3 upload 40000",
        "2 60000 1 download 300000",
        "2 60000 2 upload 60000",
        "2 60000 3 upload 60000",
    ];
    assert_eq!(rows, expected);
    let parquet = parquet_as_csv(&place.path().join("flows.parquet"));
    assert_eq!(parquet, place.csv("flows.csv"));
}

fn summary() -> CellSummary {
    CellSummary {
        cell: 3,
        parameters: vec![Datum::from("hold"), Datum::Missing, Datum::Flag(false)],
        runs: 20,
        completed: 19,
        corrupt: 0,
        failed: 1,
        elapsed_mean_s: Some(12.5),
        utilisation_mean: Some(0.9312),
        returns: 40,
        never_resumed: 2,
        resume_median_s: Some(0.0444),
        resume_p95_s: Some(1.25),
        resume_max_s: Some(3.0),
        timeouts_mean: Some(2.4),
        retransmitted_bytes_mean: Some(1_500.5),
        injected_packets_mean: Some(0.0),
        kernel: None,
    }
}

#[test]
fn the_table_for_readers() {
    let plan = plan(SWEEP);
    let cells = [
        CellSummary {
            cell: 2,
            runs: 1,
            completed: 1,
            never_resumed: 0,
            ..summary()
        },
        CellSummary {
            cell: 3,
            runs: 1,
            completed: 0,
            resume_median_s: None,
            ..summary()
        },
        CellSummary {
            cell: 4,
            completed: 20,
            ..summary()
        },
        CellSummary {
            cell: 5,
            completed: 12,
            corrupt: 1,
            ..summary()
        },
    ];
    for width in [Width::Wide, Width::Narrow] {
        let table = outlast_sweep::table(&plan, &cells, width);
        assert_snapshot!(table.to_text(&TextStyle::default()));
    }
}

#[test]
fn a_cell_as_json() {
    let json = serde_json::to_string_pretty(&summary().to_json(&plan(SWEEP)));
    assert_snapshot!(json.expect("JSON"));
}

#[test]
fn outages_that_nobody_asks_for_are_not_written() {
    let place = Place::new();
    let plan = Arc::new(plan(SWEEP));
    place.complete(&plan, 2);
    assert!(place.path().join("outages.csv").exists());
    let journal = place.open(&plan);
    let written =
        outlast_sweep::output::write(&plan, &journal, place.path(), &[Detail::Flows], |_| Ok(()));
    written.expect("tables in our directory");
    // Those of the earlier call might lack what has been run since.
    assert!(!place.path().join("outages.csv").exists());
    assert!(!place.path().join("outages.parquet").exists());
    assert!(place.path().join("flows.csv").exists());
}

#[test]
fn an_unfinished_sweep_has_no_tables() {
    let place = Place::new();
    let plan = plan(SWEEP);
    let journal = place.open(&plan);
    let written = outlast_sweep::output::write(&plan, &journal, place.path(), &[], |_| Ok(()));
    assert_eq!(
        written.expect_err("nothing was run").to_string(),
        "24 runs are not done"
    );
    assert!(!place.path().join("runs.csv").exists());
}
