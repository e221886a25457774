//! `rackmath validate`

use crate::args::Common;
use crate::failure::Failure;
use crate::output;
use clap::{Args as ClapArgs, ValueEnum};
use rackmath::Catalog;
use rackmath::validate::{self, Answer, FolderCard};
use rackmath_calibrate::serving::{self, By};
use rackmath_report::{scene, svg, text};
use std::path::{Path, PathBuf};

#[derive(ClapArgs, Clone)]
pub struct ValidateArgs {
    /// Tables by name; all when left out
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
    /// Show every row: predicted, measured, ratio
    #[arg(long)]
    pub rows: bool,
    /// Also score a folder of measurements
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Fit engines without each group of the folder in turn and predict it (takes minutes)
    #[arg(long, value_name = "GROUP", requires = "folder")]
    pub leave_out: Option<Group>,
    /// Save a chart of predicted against measured for each source into a folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

/// What a group is.
#[derive(Clone, Copy, ValueEnum)]
pub enum Group {
    Chip,
    Model,
    Engine,
}

impl Group {
    fn by(self) -> By {
        match self {
            Self::Chip => By::Chip,
            Self::Model => By::Model,
            Self::Engine => By::Engine,
        }
    }
}

pub fn run(common: &Common, catalog: &Catalog, a: &ValidateArgs) -> Result<(), Failure> {
    let request = validate::Request { tables: a.tables.clone(), rows: true };
    let mut answer = validate::answer(catalog, &request)?;
    answer.request.rows = a.rows;
    if let Some(folder) = &a.folder {
        answer.folder = Some(scored(catalog, folder, a.leave_out)?);
    }
    if let Some(folder) = &a.svg {
        charts(&answer, folder)?;
    }
    if !a.rows {
        answer.forget_rows();
    }
    output::answer(common, &answer, |style| text::validate(&answer, style))
}

fn scored(catalog: &Catalog, folder: &Path, leave_out: Option<Group>) -> Result<FolderCard, Failure> {
    let fail = |e: rackmath_calibrate::CalibrateError| Failure::from(rackmath::Error::from(e));
    let (mut card, rows) = serving::score_folder(catalog, folder).map_err(fail)?;
    if let Some(group) = leave_out {
        let tell = |done: usize, all: usize, what: &str| eprintln!("fit {done} of {all}: {what}");
        let cross = serving::leave_out(catalog, &rows, group.by(), serving::FOLD_STEPS, &tell);
        card.cross = Some(cross.map_err(fail)?);
    }
    Ok(card)
}

/// One file per source that has rows.
fn charts(answer: &Answer, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let given = answer.folder.iter().flat_map(|f| &f.sources);
    for source in answer.sources.iter().chain(given).filter(|s| !s.rows.is_empty()) {
        let path = folder.join(format!("{}.svg", source.id));
        output::save(&path, svg::paint(&scene(&validate::scatter(source))).as_bytes())?;
    }
    Ok(())
}
