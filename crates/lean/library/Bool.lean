/-! Booleans: by cases, by computation, and as propositions. -/

namespace Library.Bool

variable (a b c : Bool)

theorem not_not' : !!a = a := by
  cases a
  · rfl
  · rfl

theorem and_comm' : (a && b) = (b && a) := by
  cases a <;> cases b <;> rfl

theorem or_comm' : (a || b) = (b || a) := by
  cases a
  · cases b <;> rfl
  · cases b <;> rfl

theorem and_assoc' : ((a && b) && c) = (a && (b && c)) := by
  cases a
  · rfl
  · rfl

theorem or_assoc' : ((a || b) || c) = (a || (b || c)) := by
  cases a
  · rfl
  · rfl

theorem and_or_distrib : (a && (b || c)) = (a && b || a && c) := by
  cases a
  · rfl
  · rfl

theorem or_and_distrib : (a || b && c) = ((a || b) && (a || c)) := by
  cases a
  · rfl
  · rfl

theorem and_absorb : (a && (a || b)) = a := by
  cases a
  · rfl
  · rfl

theorem or_absorb : (a || (a && b)) = a := by
  cases a
  · rfl
  · rfl

theorem not_and' : (!(a && b)) = (!a || !b) := by
  cases a
  · rfl
  · rfl

theorem not_or' : (!(a || b)) = (!a && !b) := by
  cases a
  · rfl
  · rfl

theorem and_not_self' : (a && !a) = false := by
  cases a
  · rfl
  · rfl

theorem or_not_self' : (a || !a) = true := by
  cases a
  · rfl
  · rfl

theorem xor_self' : (a ^^ a) = false := by
  cases a
  · rfl
  · rfl

theorem xor_comm' : (a ^^ b) = (b ^^ a) := by
  cases a <;> cases b <;> rfl

theorem xor_assoc' : ((a ^^ b) ^^ c) = (a ^^ (b ^^ c)) := by
  cases a
  · cases b <;> cases c <;> rfl
  · cases b <;> cases c <;> rfl

theorem xor_false' : (a ^^ false) = a := by
  cases a
  · rfl
  · rfl

theorem xor_true' : (a ^^ true) = !a := by
  cases a
  · rfl
  · rfl

theorem eq_true_or_false : a = true ∨ a = false := by
  cases a
  · right
    rfl
  · left
    rfl

theorem ne_true_iff' : a ≠ true ↔ a = false := by
  cases a
  · simp
  · simp

theorem and_true_iff : (a && b) = true ↔ a = true ∧ b = true := by
  cases a
  · simp
  · simp

theorem or_true_iff : (a || b) = true ↔ a = true ∨ b = true := by
  cases a
  · simp
  · simp

theorem not_true_iff : (!a) = true ↔ a = false := by
  cases a
  · simp
  · simp

theorem and_left_of (h : (a && b) = true) : a = true := by
  cases a
  · rw [Bool.false_and] at h
    exact h
  · rfl

theorem and_right_of (h : (a && b) = true) : b = true := by
  rw [and_true_iff] at h
  exact h.2

theorem or_left_intro (h : a = true) : (a || b) = true := by
  rw [h]
  rfl

theorem or_right_intro (h : b = true) : (a || b) = true := by
  rw [h]
  cases a <;> rfl

theorem ite_bool (x y : Nat) (h : a = true) : (if a then x else y) = x := by
  rw [h]
  rfl

theorem ite_not_bool (x y : Nat) : (if !a then x else y) = (if a then y else x) := by
  cases a
  · rfl
  · rfl

theorem cond_same (x : Nat) : (bif a then x else x) = x := by
  cases a
  · rfl
  · rfl

theorem cond_not (x y : Nat) : (bif !a then x else y) = (bif a then y else x) := by
  cases a
  · rfl
  · rfl

theorem not_inj' (h : (!a) = !b) : a = b := by
  cases a <;> cases b <;> simp_all

theorem eq_of_iff' (h : a = true ↔ b = true) : a = b := by
  cases a
  · cases b <;> simp_all
  · cases b <;> simp_all

theorem decide_and' (p q : Prop) [Decidable p] [Decidable q] : decide (p ∧ q) = (decide p && decide q) := by
  by_cases hp : p
  · simp [hp]
  · simp [hp]

theorem decide_or' (p q : Prop) [Decidable p] [Decidable q] : decide (p ∨ q) = (decide p || decide q) := by
  by_cases hp : p
  · simp [hp]
  · simp [hp]

theorem decide_not' (p : Prop) [Decidable p] : decide (¬p) = !decide p := by
  by_cases hp : p
  · simp [hp]
  · simp [hp]

theorem all_bool (P : Bool → Prop) (ht : P true) (hf : P false) : P a := by
  cases a
  · exact hf
  · exact ht

theorem exists_bool (P : Bool → Prop) (h : ∃ x, P x) : P true ∨ P false := by
  obtain ⟨x, hx⟩ := h
  cases x
  · exact Or.inr hx
  · exact Or.inl hx

end Library.Bool
