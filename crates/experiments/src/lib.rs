//! The runner of experiments: plan, carry out, store, resume, judge, present.
//!
//! An [`Experiment`](experiment::Experiment) is a declaration: which runs its figures need, what was
//! claimed beforehand, and how the numbers are shown. [`run::run`] carries the runs out, many at once,
//! and stores each as soon as it is done; [`page::page`] makes the report of what is stored, now or
//! later. The runner knows no experiment: callers hand their own to it.
//!
//! | module | what lives there |
//! |---|---|
//! | [`experiment`] | what an experiment is |
//! | [`job`] | one run of a scenario, before it is carried out |
//! | [`trial`] | what a live run does, which only its experiment knows |
//! | [`batch`] | many runs at once |
//! | [`moments`] | when live runs of a batch may do what is timed or much |
//! | [`record`] | one run, after it was carried out |
//! | [`recorded`] | the judgements as a repository keeps them, and what has changed since |
//! | [`store`] | the files that hold the runs |
//! | [`page`] | the report |
#![forbid(unsafe_code)]

pub mod batch;
pub mod carry_out;
pub mod diagram;
pub mod experiment;
pub mod job;
pub mod moments;
pub mod page;
pub mod present;
pub mod record;
pub mod recorded;
pub mod run;
pub mod setting;
pub mod store;
pub mod trial;
