/-! Propositions, connectives and quantifiers. -/

namespace Library.Logic

variable {p q r s : Prop}

theorem and_swap (h : p ∧ q) : q ∧ p := by
  constructor
  · exact h.2
  · exact h.1

theorem and_rotate (h : p ∧ q ∧ r) : q ∧ r ∧ p := by
  obtain ⟨hp, hq, hr⟩ := h
  exact ⟨hq, hr, hp⟩

theorem and_regroup (h : (p ∧ q) ∧ r) : p ∧ (q ∧ r) := by
  obtain ⟨⟨hp, hq⟩, hr⟩ := h
  refine ⟨hp, ?_⟩
  exact ⟨hq, hr⟩

theorem or_swap (h : p ∨ q) : q ∨ p := by
  cases h with
  | inl hp => exact Or.inr hp
  | inr hq => exact Or.inl hq

theorem or_regroup (h : (p ∨ q) ∨ r) : p ∨ (q ∨ r) := by
  rcases h with (hp | hq) | hr
  · exact Or.inl hp
  · exact Or.inr (Or.inl hq)
  · exact Or.inr (Or.inr hr)

theorem or_idem (h : p ∨ p) : p := by
  cases h
  · assumption
  · assumption

theorem and_or_left (h : p ∧ (q ∨ r)) : (p ∧ q) ∨ (p ∧ r) := by
  obtain ⟨hp, hq | hr⟩ := h
  · exact Or.inl ⟨hp, hq⟩
  · exact Or.inr ⟨hp, hr⟩

theorem and_or_left_back (h : (p ∧ q) ∨ (p ∧ r)) : p ∧ (q ∨ r) := by
  rcases h with ⟨hp, hq⟩ | ⟨hp, hr⟩
  · exact ⟨hp, Or.inl hq⟩
  · exact ⟨hp, Or.inr hr⟩

theorem or_and_left (h : p ∨ (q ∧ r)) : (p ∨ q) ∧ (p ∨ r) := by
  cases h with
  | inl hp => exact ⟨Or.inl hp, Or.inl hp⟩
  | inr hqr => exact ⟨Or.inr hqr.1, Or.inr hqr.2⟩

theorem imp_trans (f : p → q) (g : q → r) : p → r := by
  intro hp
  apply g
  exact f hp

theorem imp_flip (f : p → q → r) : q → p → r := by
  intro hq hp
  exact f hp hq

theorem imp_self_twice : p → p → p := by
  intro h _
  exact h

theorem curry (f : p ∧ q → r) : p → q → r := by
  intro hp hq
  apply f
  exact ⟨hp, hq⟩

theorem uncurry (f : p → q → r) : p ∧ q → r := by
  intro h
  exact f h.1 h.2

theorem curry_iff : (p ∧ q → r) ↔ (p → q → r) := by
  constructor
  · intro f hp hq
    exact f ⟨hp, hq⟩
  · intro f h
    exact f h.1 h.2

theorem not_not_intro (hp : p) : ¬¬p := by
  intro hn
  exact hn hp

theorem not_not_not (h : ¬¬¬p) : ¬p := by
  intro hp
  apply h
  intro hn
  exact hn hp

theorem contrapose (f : p → q) : ¬q → ¬p := by
  intro hq hp
  exact hq (f hp)

theorem absurd_pair (h : p ∧ ¬p) : q := by
  exfalso
  exact h.2 h.1

theorem not_or_split (h : ¬(p ∨ q)) : ¬p ∧ ¬q := by
  constructor
  · intro hp
    exact h (Or.inl hp)
  · intro hq
    exact h (Or.inr hq)

theorem not_or_join (h : ¬p ∧ ¬q) : ¬(p ∨ q) := by
  intro hpq
  cases hpq with
  | inl hp => exact h.1 hp
  | inr hq => exact h.2 hq

theorem not_and_of_or (h : ¬p ∨ ¬q) : ¬(p ∧ q) := by
  intro hpq
  rcases h with hp | hq
  · exact hp hpq.1
  · exact hq hpq.2

theorem or_resolve (h : p ∨ q) (hp : ¬p) : q := by
  cases h with
  | inl h => exact absurd h hp
  | inr h => exact h

theorem or_map (f : p → r) (g : q → s) (h : p ∨ q) : r ∨ s := by
  cases h with
  | inl hp => exact Or.inl (f hp)
  | inr hq => exact Or.inr (g hq)

theorem and_map (f : p → r) (g : q → s) (h : p ∧ q) : r ∧ s := by
  constructor
  · exact f h.1
  · exact g h.2

theorem iff_of_both (hp : p) (hq : q) : p ↔ q := by
  constructor
  · intro _
    exact hq
  · intro _
    exact hp

theorem iff_swap (h : p ↔ q) : q ↔ p := by
  constructor
  · exact h.mpr
  · exact h.mp

theorem iff_chain (h : p ↔ q) (k : q ↔ r) : p ↔ r := by
  rw [h]
  exact k

theorem and_congr_both (h : p ↔ q) (k : r ↔ s) : p ∧ r ↔ q ∧ s := by
  rw [h, k]

theorem or_congr_both (h : p ↔ q) (k : r ↔ s) : p ∨ r ↔ q ∨ s := by
  rw [h]
  rw [k]

theorem and_true_drop : p ∧ True ↔ p := by
  constructor
  · intro h
    exact h.1
  · intro h
    exact ⟨h, trivial⟩

theorem or_false_drop : p ∨ False ↔ p := by
  constructor
  · intro h
    exact or_resolve (or_swap h) id
  · intro h
    left
    exact h

theorem and_self_iff' : p ∧ p ↔ p := by
  constructor
  · intro h
    exact h.left
  · intro h
    exact ⟨h, h⟩

theorem imp_and_iff : (p → q ∧ r) ↔ (p → q) ∧ (p → r) := by
  constructor
  · intro f
    exact ⟨fun hp => (f hp).1, fun hp => (f hp).2⟩
  · intro f hp
    exact ⟨f.1 hp, f.2 hp⟩

theorem or_imp_iff : (p ∨ q → r) ↔ (p → r) ∧ (q → r) := by
  constructor
  · intro f
    exact ⟨fun hp => f (Or.inl hp), fun hq => f (Or.inr hq)⟩
  · intro f h
    exact h.elim f.1 f.2

theorem forall_and_split {α : Type} {P Q : α → Prop} (h : ∀ x, P x ∧ Q x) : (∀ x, P x) ∧ (∀ x, Q x) := by
  constructor
  · intro x
    exact (h x).1
  · intro x
    exact (h x).2

theorem exists_or_split {α : Type} {P Q : α → Prop} (h : ∃ x, P x ∨ Q x) : (∃ x, P x) ∨ (∃ x, Q x) := by
  obtain ⟨x, hp | hq⟩ := h
  · exact Or.inl ⟨x, hp⟩
  · exact Or.inr ⟨x, hq⟩

theorem exists_and_const {α : Type} {P : α → Prop} (h : ∃ x, P x ∧ q) : (∃ x, P x) ∧ q := by
  obtain ⟨x, hp, hq⟩ := h
  exact ⟨⟨x, hp⟩, hq⟩

theorem not_exists_all {α : Type} {P : α → Prop} (h : ¬∃ x, P x) : ∀ x, ¬P x := by
  intro x hx
  apply h
  exact ⟨x, hx⟩

theorem not_forall_of_exists {α : Type} {P : α → Prop} (h : ∃ x, ¬P x) : ¬∀ x, P x := by
  intro all
  obtain ⟨x, hx⟩ := h
  exact hx (all x)

theorem exists_swap {α β : Type} {R : α → β → Prop} (h : ∃ x, ∃ y, R x y) : ∃ y, ∃ x, R x y := by
  obtain ⟨x, y, hxy⟩ := h
  exact ⟨y, x, hxy⟩

theorem exists_forall_swap {α β : Type} {R : α → β → Prop} (h : ∃ x, ∀ y, R x y) : ∀ y, ∃ x, R x y := by
  intro y
  obtain ⟨x, hx⟩ := h
  exact ⟨x, hx y⟩

theorem forall_imp_map {α : Type} {P Q : α → Prop} (f : ∀ x, P x → Q x) (h : ∀ x, P x) : ∀ x, Q x := by
  intro x
  apply f
  exact h x

theorem exists_imp_map {α : Type} {P Q : α → Prop} (f : ∀ x, P x → Q x) (h : ∃ x, P x) : ∃ x, Q x := by
  cases h with
  | intro x hx => exact ⟨x, f x hx⟩

theorem em_not_not (h : ¬¬p) : p := by
  cases Classical.em p with
  | inl hp => exact hp
  | inr hn => exact absurd hn h

theorem peirce (h : (p → q) → p) : p := by
  apply Classical.byContradiction
  intro hn
  apply hn
  apply h
  intro hp
  exact absurd hp hn

theorem not_imp_split (h : ¬(p → q)) : p ∧ ¬q := by
  constructor
  · apply Classical.byContradiction
    intro hn
    exact h (fun hp => absurd hp hn)
  · intro hq
    exact h (fun _ => hq)

theorem imp_iff_or : (p → q) ↔ ¬p ∨ q := by
  constructor
  · intro f
    cases Classical.em p with
    | inl hp => exact Or.inr (f hp)
    | inr hn => exact Or.inl hn
  · intro h hp
    exact h.resolve_left (fun hn => hn hp)

theorem eq_subst_prop {α : Type} {a b : α} {P : α → Prop} (h : a = b) (ha : P a) : P b := by
  subst h
  exact ha

theorem eq_chain {α : Type} {a b c d : α} (h₁ : a = b) (h₂ : c = b) (h₃ : c = d) : a = d := by
  rw [h₁]
  rw [← h₂]
  exact h₃

theorem ne_swap {α : Type} {a b : α} (h : a ≠ b) : b ≠ a := by
  intro e
  apply h
  exact e.symm

end Library.Logic
