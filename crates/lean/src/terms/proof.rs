//! A proof as terms: what a prover calls its constants, and what the theorem rests on.

use std::collections::{HashMap, HashSet};

use super::{AFTER_ZERO, Declaration, Expr, Name, Terms};

/// What auxiliary constants are called before a kernel, with a number.
const OWN: &str = "_auxiliary";
/// Expressions that are looked at for a variable, each once a depth: a term that is made for it has
/// as many as its size times its depth.
const MOST_LOOKS: usize = 4_000_000;

impl Terms {
    /// The same proof with names of ours for its auxiliary constants.
    ///
    /// Names should carry no meaning, but kernels know some: they compute `Nat.gcd` by arithmetic,
    /// whatever a constant of that name is defined to be.
    pub fn with_own_names(&self) -> Terms {
        let mut terms = self.clone();
        let Some((_, auxiliaries)) = self.declarations.split_last() else { return terms };
        let stem = terms.names.add(Name::Text(0, OWN.to_owned()), AFTER_ZERO);
        let mut own: HashMap<u32, u32> = HashMap::new();
        for (declaration, number) in auxiliaries.iter().zip(0..) {
            // Whatever else a prover declares is refused under the name that it has.
            if let Declaration::Theorem(head, _) | Declaration::Definition(head, ..) = declaration {
                let name = terms.names.add(Name::Number(stem, number), AFTER_ZERO);
                own.insert(head.name, name);
            }
        }
        let renamed = |name: &mut u32| *name = own.get(name).copied().unwrap_or(*name);
        for expr in &mut terms.exprs.items {
            if let Expr::Constant { name, .. } | Expr::Project { structure: name, .. } = expr {
                renamed(name);
            }
        }
        terms.exprs.numbers = terms.exprs.items.iter().cloned().zip(0..).collect();
        for declaration in &mut terms.declarations {
            if let Declaration::Theorem(head, _) | Declaration::Definition(head, ..) = declaration {
                renamed(&mut head.name);
            }
        }
        terms
    }

    /// Whether the last theorem's proof uses its argument at `position`. One that does not start
    /// with so many arguments is held to use all of them.
    pub fn uses_argument(&self, position: u32) -> bool {
        let Some(Declaration::Theorem(_, value)) = self.declarations.last() else { return true };
        let mut at = *value;
        for _ in 0..position {
            match &self.exprs.items[at as usize] {
                Expr::Lambda(binder) => at = binder.body,
                _ => return true,
            }
        }
        match &self.exprs.items[at as usize] {
            Expr::Lambda(binder) => self.has_variable(binder.body),
            _ => true,
        }
    }

    /// Whether the innermost variable that `expr` leaves open is in it. Where that would take too
    /// long to say, it is held to be.
    fn has_variable(&self, expr: u32) -> bool {
        let open = self.open_variables(expr);
        let mut seen = HashSet::new();
        let mut todo = vec![(expr, 0)];
        while let Some((expr, depth)) = todo.pop() {
            // What leaves only nearer variables open is passed over: closed terms first of all.
            if open[expr as usize] <= depth || !seen.insert((expr, depth)) {
                continue;
            }
            if seen.len() > MOST_LOOKS {
                return true;
            }
            match &self.exprs.items[expr as usize] {
                Expr::Variable(i) if *i == depth => return true,
                Expr::Apply(f, a) => todo.extend([(*f, depth), (*a, depth)]),
                Expr::Lambda(b) | Expr::Forall(b) => {
                    todo.extend([(b.domain, depth), (b.body, depth + 1)]);
                }
                Expr::Let { domain, value, body, .. } => {
                    todo.extend([(*domain, depth), (*value, depth), (*body, depth + 1)]);
                }
                Expr::Project { of, .. } => todo.push((*of, depth)),
                Expr::Variable(_)
                | Expr::Sort(_)
                | Expr::Constant { .. }
                | Expr::Natural(_)
                | Expr::Text(_) => {}
            }
        }
        false
    }

    /// By expression, up to this one: how many variables, counted outwards, it may leave open.
    fn open_variables(&self, last: u32) -> Vec<u32> {
        let mut open: Vec<u32> = Vec::with_capacity(last as usize + 1);
        for expr in &self.exprs.items[..=last as usize] {
            let of = |e: u32| open[e as usize];
            let under = |e: u32| open[e as usize].saturating_sub(1);
            let most = match expr {
                Expr::Variable(i) => i + 1,
                Expr::Apply(f, a) => of(*f).max(of(*a)),
                Expr::Lambda(b) | Expr::Forall(b) => of(b.domain).max(under(b.body)),
                Expr::Let { domain, value, body, .. } => {
                    of(*domain).max(of(*value)).max(under(*body))
                }
                Expr::Project { of: e, .. } => of(*e),
                Expr::Sort(_) | Expr::Constant { .. } | Expr::Natural(_) | Expr::Text(_) => 0,
            };
            open.push(most);
        }
        open
    }
}
