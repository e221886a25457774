//! What a server's command line says of an estimate: its engine, formats, layout and schedule.

use super::Request;
use crate::desk::line;
use crate::desk::prelude::*;
use crate::layout::DegreesRequest;

/// The request as a command line beside it says, with what became of its flags; none where there is nothing to obey.
pub(crate) fn obeyed(catalog: &Catalog, request: &Request) -> Result<Option<(Request, Vec<Remark>)>, Error> {
    let text = match (&request.flags, &request.tool) {
        (Some(text), _) => text.as_str(),
        (None, Some(_)) => "--help",
        (None, None) => return Ok(None),
    };
    let Some((launch, engine)) = line::beside(catalog, text, request.tool.as_deref(), &request.engine)? else {
        return Ok(None);
    };
    if request.flags.is_none() {
        return Ok(Some((Request { engine, tool: None, ..request.clone() }, Vec::new())));
    }
    let own = request.degrees != DegreesRequest::default();
    let both = "the layout in {flags} or in degrees of its own, not both";
    refuse_if(own && launch.cut, "flags", format!("{} beside other degrees", launch.layout), both)?;
    let mut said = line::remarks(&launch);
    let mut r = Request { engine, flags: None, tool: None, ..request.clone() };
    if !own {
        r.degrees = line::degrees(&launch);
    }
    let (pass, sequences) = line::of_group(&launch);
    let usual = Setting::default();
    match launch.model {
        Some(model) if r.setting.model == usual.model => r.setting.model = model,
        Some(model) if model != r.setting.model => {
            said.insert(0, says("flags_other_model").with("line", model).with("asked", &r.setting.model));
        }
        _ => {}
    }
    r.setting.weights = r.setting.weights.or(launch.weights);
    r.setting.kv = r.setting.kv.or(launch.kv);
    r.max_num_batched_tokens = r.max_num_batched_tokens.or(pass);
    r.max_num_seqs = r.max_num_seqs.or(sequences);
    r.memory_utilisation = r.memory_utilisation.or(launch.start.utilisation.map(Fraction::get));
    r.enforce_eager |= launch.start.eager;
    if launch.start.prefix_cache == Some(false) && r.prefix_hit > 0.0 {
        said.push(says("flags_no_prefixes").with("share", r.prefix_hit));
        r.prefix_hit = 0.0;
    }
    if let Some(drafts) = launch.start.drafts.filter(|n| *n > 0) {
        match &mut r.speculation {
            Some(speculation) => speculation.drafts = super::Drafts::Number(drafts as f64),
            None => said.push(says("flags_no_acceptance").with("drafts", drafts)),
        }
    }
    if let Some(longest) = launch.start.longest.filter(|n| r.isl + r.osl > *n as f64) {
        let given = format!("{} tokens in and out", grouped(r.isl + r.osl));
        return Err(Error::value(
            "isl",
            given,
            format!("at most {} in and out, as the line says", grouped(longest as f64)),
        ));
    }
    Ok(Some((r, said)))
}
