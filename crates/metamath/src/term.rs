//! Terms as flat arrays: the nodes in preorder, each with a fixed number of children.

/// One kind of node: a variable, a syntax axiom, or the typecode that makes a formula of a term.
#[derive(Debug)]
pub(crate) struct Node {
    /// The statement that makes it, to be named in proofs; the typecode itself for a formula's
    /// head.
    pub(crate) label: Box<str>,
    pub(crate) typecode: u32,
    pub(crate) arity: u32,
    /// The constants before, between and after the children: always one more than there are
    /// children.
    pub(crate) pieces: Box<[Box<str>]>,
    /// For each floating hypothesis in the order of the proof, which child it is.
    pub(crate) order: Box<[u32]>,
    /// The place of the statement in the database, and that of the end of its scope.
    pub(crate) ordinal: u32,
    pub(crate) until: u32,
}

/// Node kinds by id; variables first.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) kinds: Vec<Node>,
    /// The arities again, packed, as every walk over a term needs them.
    pub(crate) arity: Vec<u8>,
    /// How many of the kinds are variables.
    pub(crate) variables: u32,
}

impl Nodes {
    pub(crate) fn push(&mut self, node: Node) -> u32 {
        self.arity.push(node.arity as u8);
        self.kinds.push(node);
        self.kinds.len() as u32 - 1
    }

    pub(crate) fn is_variable(&self, node: u32) -> bool {
        node < self.variables
    }

    /// Where the subterm that starts at `from` ends.
    #[inline]
    pub(crate) fn end(&self, term: &[u32], from: usize) -> usize {
        let mut missing = 1usize;
        let mut at = from;
        while missing > 0 {
            missing = missing + usize::from(self.arity[term[at] as usize]) - 1;
            at += 1;
        }
        at
    }

    /// Appends the symbols of a term, separated by single spaces.
    pub(crate) fn write(&self, term: &[u32], out: &mut String) {
        // Pairs of a node that is not finished and its next piece.
        let mut stack: Vec<(u32, u32)> = Vec::with_capacity(16);
        let start = out.len();
        for &node in term {
            self.piece(node, 0, start, out);
            if self.arity[node as usize] > 0 {
                stack.push((node, 1));
                continue;
            }
            while let Some((node, piece)) = stack.pop() {
                self.piece(node, piece, start, out);
                if piece < u32::from(self.arity[node as usize]) {
                    stack.push((node, piece + 1));
                    break;
                }
            }
        }
    }

    fn piece(&self, node: u32, piece: u32, start: usize, out: &mut String) {
        let text = &self.kinds[node as usize].pieces[piece as usize];
        if !text.is_empty() {
            if out.len() > start {
                out.push(' ');
            }
            out.push_str(text);
        }
    }
}
