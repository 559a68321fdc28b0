//! Sentences on courses over ordered factors, and on interactions of two factors.

use pgdyno_text::format;

use super::comparison::range;
use super::phrases::{capital, with};
use pgdyno_analysis::{CourseView, InteractionView, RunView};

/// Renders where each course rises, falls and is highest.
pub(super) fn courses(view: &RunView) -> impl Iterator<Item = String> {
    view.courses.iter().map(|course| {
        let said = format!(
            "{}over {} levels of {}, {} (95% confidence).",
            with(&course.given),
            course.treatments.len(),
            course.factor,
            shape(course, view)
        );
        capital(&said)
    })
}

/// Renders the shape of a course: `tps rises, and is highest at clients=16`.
fn shape(course: &CourseView, view: &RunView) -> String {
    let measure = view.measure();
    let Some(peak) = course.peak else {
        return format!("{measure} falls and rises again: it has no single peak");
    };
    let moves = match (course.rises, course.falls) {
        (false, false) => return format!("no change of the {measure} is shown"),
        (true, false) => "rises, and is",
        (false, true) => "falls, and is",
        (true, true) => "rises and falls, and is",
    };
    format!("{measure} {moves} highest {}", place(course, peak, view))
}

/// Renders the levels that may be the highest: `at clients=16`, `between clients=8 and clients=32`.
fn place(course: &CourseView, [first, last]: [usize; 2], view: &RunView) -> String {
    let factor = &course.factor;
    let [low, high] = [first, last].map(|position| {
        let levels = &view.plan.treatments[course.treatments[position]].levels;
        levels.get(factor).map_or_else(String::new, |level| format!("{factor}={level}"))
    });
    let beyond =
        if first + 1 == course.treatments.len() { ", the last that was measured" } else { "" };
    if first == last { format!("at {low}{beyond}") } else { format!("between {low} and {high}") }
}

/// Names the numbers of clients between which a sweep's peak lies; none for a single number, or
/// without a significant change.
pub(super) fn peak_between(view: &RunView, treatments: &[usize]) -> Option<String> {
    let is_it = |course: &&CourseView| {
        course.factor == "clients" && course.treatments.iter().all(|t| treatments.contains(t))
    };
    let course = view.courses.iter().find(is_it)?;
    let peak = course.peak.filter(|[first, last]| first < last)?;
    (course.rises || course.falls)
        .then(|| format!("the peak lies {} (95% confidence)", place(course, peak, view)))
}

/// Renders whether effects depend on other factors, with the clearest difference.
pub(super) fn interactions(view: &RunView) -> impl Iterator<Item = String> {
    view.interactions.iter().map(|found| {
        let InteractionView { factor, on, level, against, higher_with, lower_with, .. } = found;
        let figures = format!(
            "the ratio of {factor}={level} to {factor}={against} is {} times as high with \
             {on}={higher_with} as with {on}={lower_with} (95% CI {})",
            format::times(found.ratio),
            range(found.ci95)
        );
        if found.depends {
            format!("The effect of {factor} depends on {on}: {figures}.")
        } else {
            format!("That the effect of {factor} depends on {on} is not shown: {figures}.")
        }
    })
}

/// Says of the effect of `factor`, which was named level by level, on what it depends.
pub(super) fn dependence(view: &RunView, factor: &str) -> Option<String> {
    let of_factor = |found: &&InteractionView| found.factor == factor || found.on == factor;
    let other = |found: &InteractionView| {
        if found.factor == factor { found.on.clone() } else { found.factor.clone() }
    };
    let (shown, not_shown): (Vec<&InteractionView>, Vec<&InteractionView>) =
        view.interactions.iter().filter(of_factor).partition(|found| found.depends);
    let names = |found: &[&InteractionView]| {
        found.iter().map(|found| other(found)).collect::<Vec<_>>().join(" and ")
    };
    match (shown.as_slice(), not_shown.as_slice()) {
        ([], []) => None,
        ([], rest) => Some(format!("That this depends on {} is not shown.", names(rest))),
        (found, _) => Some(format!("This depends on {}.", names(found))),
    }
}
