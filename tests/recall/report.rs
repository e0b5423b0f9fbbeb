//! Recall by category, differences between methods with their spread, and times.

use std::fmt::Write as _;
use std::time::Duration;

use crate::BUDGETS;
use crate::corpus::Question;
use crate::selections::Index;

/// How often conversations are drawn for an interval.
const DRAWS: usize = 10_000;

const INTERVALS: &str =
    "Of the same questions; in brackets 95 % of what drawing conversations with replacement gives.";

/// One way to select turns.
pub struct Method {
    name: &'static str,
    /// For each question the places selected at each budget.
    selections: Vec<[Vec<usize>; BUDGETS.len()]>,
    /// How long each question took: of no statement, of one for all budgets, or of one a budget.
    times: Vec<Vec<Duration>>,
}

impl Method {
    pub fn new(
        name: &'static str,
        selections: Vec<[Vec<usize>; BUDGETS.len()]>,
        times: Vec<Vec<Duration>>,
    ) -> Self {
        Method { name, selections, times }
    }
}

pub struct Report {
    /// Category and conversation of each question.
    questions: Vec<(u8, usize)>,
    conversations: usize,
    methods: Vec<Method>,
    /// For each method and budget the recall of each question.
    recall: Vec<[Vec<f64>; BUDGETS.len()]>,
    /// For each method and budget the mean tokens selected.
    tokens: Vec<[f64; BUDGETS.len()]>,
}

impl Report {
    /// What the methods have selected for these questions.
    pub fn new(
        questions: &[&Question],
        conversations: usize,
        methods: Vec<Method>,
        indexes: &[Index],
    ) -> Self {
        let share = |question: &Question, selection: &Vec<usize>| {
            let found = question.evidence.iter().filter(|place| selection.contains(place)).count();
            found as f64 / question.evidence.len() as f64
        };
        let each = |method: &Method, budget: usize, of: &dyn Fn(&Question, &Vec<usize>) -> f64| {
            let pairs = questions.iter().zip(&method.selections);
            pairs.map(|(question, selected)| of(question, &selected[budget])).collect::<Vec<f64>>()
        };
        let taken = |question: &Question, selection: &Vec<usize>| {
            f64::from(indexes[question.conversation].tokens_of(selection))
        };
        Report {
            questions: questions
                .iter()
                .map(|question| (question.category, question.conversation))
                .collect(),
            conversations,
            recall: methods
                .iter()
                .map(|m| [0, 1, 2, 3].map(|budget| each(m, budget, &share)))
                .collect(),
            tokens: methods
                .iter()
                .map(|m| [0, 1, 2, 3].map(|budget| mean(&each(m, budget, &taken))))
                .collect(),
            methods,
        }
    }

    /// Tables in Markdown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String can be written to");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let budgets = BUDGETS.map(|budget| budget.to_string());
        for (title, categories) in
            [("Categories 1 to 4", 1..=4), ("Category 5", 5..=5), ("All categories", 1..=5)]
        {
            let asked = self.places(|category| categories.contains(&category));
            writeln!(text, "\n### {title}: {} questions\n", asked.len())?;
            head(text, "selection", &budgets)?;
            for (method, recall) in self.methods.iter().zip(&self.recall) {
                let cells = recall.each_ref().map(|of| share(mean_of(of, &asked)));
                row(text, method.name, &cells)?;
            }
        }
        for (at, budget) in BUDGETS.iter().enumerate() {
            writeln!(text, "\n### {budget} tokens, by category\n")?;
            let categories =
                [1, 2, 3, 4, 5].map(|category| (category, self.places(|of| of == category)));
            let titles = categories
                .each_ref()
                .map(|(category, asked)| format!("{category} ({})", asked.len()));
            head(text, "selection", &titles)?;
            for (method, recall) in self.methods.iter().zip(&self.recall) {
                let cells =
                    categories.each_ref().map(|(_, asked)| share(mean_of(&recall[at], asked)));
                row(text, method.name, &cells)?;
            }
        }
        let ours = |method: &Method| method.name.contains("graph_recall");
        let (recalls, others): (Vec<usize>, Vec<usize>) =
            (0..self.methods.len()).partition(|of| ours(&self.methods[*of]));
        for of in recalls {
            let name = self.methods[of].name;
            writeln!(text, "\n### {name}, less the others, categories 1 to 4\n")?;
            writeln!(text, "{INTERVALS}\n")?;
            head(text, "less", &budgets)?;
            for other in &others {
                let cells = [0, 1, 2, 3].map(|at| {
                    let (mean, low, high) =
                        self.difference(&self.recall[of][at], &self.recall[*other][at]);
                    format!("{mean:+.3} ({low:+.3} to {high:+.3})")
                });
                row(text, self.methods[*other].name, &cells)?;
            }
        }
        writeln!(text, "\n### Tokens selected, mean\n")?;
        head(text, "selection", &budgets)?;
        for (method, tokens) in self.methods.iter().zip(&self.tokens) {
            row(text, method.name, &tokens.map(|of| format!("{of:.0}")))?;
        }
        writeln!(text, "\n### Time at the client: median (p95), ms\n")?;
        head(text, "statement", &budgets)?;
        for method in self.methods.iter().filter(|method| !method.times.is_empty()) {
            // What only ranks takes the same time for each budget.
            let times = method.times.iter().cycle().take(BUDGETS.len());
            row(text, method.name, &times.map(|times| time(times)).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn places(&self, category: impl Fn(u8) -> bool) -> Vec<usize> {
        (0..self.questions.len()).filter(|place| category(self.questions[*place].0)).collect()
    }

    /// The mean difference over the questions of the categories 1 to 4, and between which values 95 %
    /// of the means lie when as many conversations as there are, are drawn at random.
    fn difference(&self, ours: &[f64], theirs: &[f64]) -> (f64, f64, f64) {
        let mut sums = vec![(0.0, 0usize); self.conversations];
        for place in self.places(|category| category < 5) {
            let (sum, count) = &mut sums[self.questions[place].1];
            *sum += ours[place] - theirs[place];
            *count += 1;
        }
        sums.retain(|(_, count)| *count > 0);
        let mean = |of: &mut dyn Iterator<Item = &(f64, usize)>| {
            let (sum, count) = of.fold((0.0, 0), |(a, n), (sum, count)| (a + sum, n + count));
            sum / count as f64
        };
        let mut random = fastrand::Rng::with_seed(11);
        let mut means: Vec<f64> = (0..DRAWS)
            .map(|_| mean(&mut (0..sums.len()).map(|_| &sums[random.usize(..sums.len())])))
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        (mean(&mut sums.iter()), means[DRAWS / 40], means[DRAWS - 1 - DRAWS / 40])
    }
}

fn head(text: &mut String, first: &str, titles: &[String]) -> std::fmt::Result {
    row(text, first, titles)?;
    writeln!(text, "|---{}|", "|---".repeat(titles.len()))
}

fn row(text: &mut String, first: &str, cells: &[String]) -> std::fmt::Result {
    writeln!(text, "| {first} | {} |", cells.join(" | "))
}

fn share(value: f64) -> String {
    format!("{value:.3}").trim_start_matches('0').to_owned()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn mean_of(values: &[f64], places: &[usize]) -> f64 {
    mean(&places.iter().map(|place| values[*place]).collect::<Vec<_>>())
}

fn time(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |percent: usize| {
        times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3
    };
    format!("{:.1} ({:.1})", at(50), at(95))
}
