//! Whether the mutexes with a ceiling of a lane with levels block no more jobs than the analysis says.

use super::super::super::system::{Locking, Placement};
use super::super::steps::View;

/// Checks that the job with the shortest deadline of a CPU locks each mutex with a ceiling; `own_ns` has the deadlines that order jobs. The
/// ceiling is the highest level: while a job holds the mutex, no other job begins. The analysis says the same only of jobs that are no more
/// urgent than all that lock it.
///
/// # Errors
/// In words, which mutex would block which job beyond its bound, and what to change.
pub(super) fn check(
    view: &View<'_>,
    own_ns: &[Option<u64>],
    place: Placement,
) -> Result<(), String> {
    let system = view.system;
    let jobs = jobs(view, own_ns, place);
    let least_ns = jobs.iter().map(|&(_, deadline_ns)| deadline_ns).min();
    let urgent = jobs.iter().filter(|(_, due_ns)| Some(*due_ns) == least_ns);
    let urgent: Vec<usize> = urgent.map(|&(behaviour, _)| behaviour).collect();
    for (index, resource) in system.resources.iter().enumerate() {
        let component = &system.components[resource.component];
        let is_here = (component.node, component.cpu) == (place.node, place.cpu);
        let locks = |behaviour: &usize| {
            let mut sections = system.behaviours[*behaviour].sections.iter();
            sections.any(|section| section.resource == index)
        };
        if is_here && resource.locking == Locking::Ceiling && !urgent.iter().any(locks) {
            let behaviour = urgent.first();
            return Err(format!(
                "{} has a ceiling, and {}, which has the shortest deadline of its CPU, does not lock it but would wait for it: a ceiling \
                 is above all jobs of the CPU. Write mutex = \"inheritance\"",
                resource.name,
                behaviour.map_or("a job", |&one| &system.behaviours[one].name),
            ));
        }
    }
    Ok(())
}

/// Returns the behaviours that the jobs of a CPU perform, each with the deadline of its job.
fn jobs(view: &View<'_>, own_ns: &[Option<u64>], place: Placement) -> Vec<(usize, u64)> {
    let activations = view.composition.activations.iter();
    let here = activations.filter(|one| view.system.placement(one.behaviour) == place);
    let job = here.filter_map(|one| {
        let owner = view.goals.owner_of[one.done];
        let deadline_ns = own_ns[view.goals.owners[owner].behaviour]?;
        Some((one.behaviour, deadline_ns))
    });
    job.collect()
}
