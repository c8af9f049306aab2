/-! Natural numbers: rewriting, induction, order, and linear arithmetic. -/

namespace Library.Nat

variable (a b c d m n k : Nat)

theorem zero_add' : 0 + n = n := by
  induction n with
  | zero => rfl
  | succ n ih => rw [← Nat.add_assoc, ih]

theorem succ_add' : (m + 1) + n = (m + n) + 1 := by
  induction n with
  | zero => rfl
  | succ n ih =>
    rw [← Nat.add_assoc, ih]
    rfl

theorem add_comm' : m + n = n + m := by
  induction n with
  | zero => simp
  | succ n ih => omega

theorem add_swap : a + (b + c) = b + (a + c) := by
  rw [← Nat.add_assoc]
  rw [Nat.add_comm a b]
  rw [Nat.add_assoc]

theorem add_rotate : a + b + c = c + a + b := by
  rw [Nat.add_comm (a + b) c]
  rw [← Nat.add_assoc]

theorem add_cancel (h : a + c = b + c) : a = b := by
  apply Nat.add_right_cancel
  exact h

theorem add_eq_zero_left (h : a + b = 0) : a = 0 := by
  cases a with
  | zero => rfl
  | succ a => omega

theorem mul_zero' : n * 0 = 0 := by
  cases n
  · rfl
  · rfl

theorem zero_mul' : 0 * n = 0 := by
  induction n with
  | zero => rfl
  | succ n ih => rw [Nat.mul_succ, ih]

theorem mul_one' : n * 1 = n := by
  rw [Nat.mul_succ]
  rw [Nat.mul_zero]
  rw [Nat.zero_add]

theorem mul_two' : n * 2 = n + n := by
  rw [Nat.mul_succ]
  rw [Nat.mul_one]

theorem two_mul' : 2 * n = n + n := by
  rw [Nat.mul_comm]
  exact Nat.mul_two n

theorem mul_swap : a * (b * c) = b * (a * c) := by
  rw [← Nat.mul_assoc]
  rw [Nat.mul_comm a b]
  rw [Nat.mul_assoc]

theorem mul_add_three : a * (b + c + d) = a * b + a * c + a * d := by
  rw [Nat.mul_add]
  rw [Nat.mul_add]

theorem add_mul_self : (a + b) * (a + b) = a * a + a * b + (b * a + b * b) := by
  rw [Nat.mul_add]
  rw [Nat.add_mul, Nat.add_mul]
  ac_rfl

theorem square_succ : (n + 1) * (n + 1) = n * n + 2 * n + 1 := by
  rw [Nat.mul_add, Nat.add_mul]
  omega

theorem double_eq : n + n = 2 * n := by
  induction n with
  | zero => rfl
  | succ n ih => omega

theorem pow_two' : n ^ 2 = n * n := by
  rw [Nat.pow_succ]
  rw [Nat.pow_one]

theorem pow_zero' : n ^ 0 = 1 := by
  cases n
  · rfl
  · rfl

theorem one_pow' : 1 ^ n = 1 := by
  induction n with
  | zero => rfl
  | succ n ih => rw [Nat.pow_succ, ih]

theorem pow_add' : a ^ (m + n) = a ^ m * a ^ n := by
  induction n with
  | zero => simp
  | succ n ih => rw [← Nat.add_assoc, Nat.pow_succ, ih, Nat.pow_succ, Nat.mul_assoc]

theorem pow_pos' (h : 0 < a) : 0 < a ^ n := by
  induction n with
  | zero => simp
  | succ n ih =>
    rw [Nat.pow_succ]
    exact Nat.mul_pos ih h

theorem le_refl' : n ≤ n := by
  induction n with
  | zero => exact Nat.le.refl
  | succ n ih => exact Nat.succ_le_succ ih

theorem le_chain (h : a ≤ b) (k : b ≤ c) (l : c ≤ d) : a ≤ d := by
  apply Nat.le_trans h
  apply Nat.le_trans k
  exact l

theorem le_add_extra (h : a ≤ b) : a ≤ b + c := by
  apply Nat.le_trans h
  exact Nat.le_add_right b c

theorem add_le_both (h : a ≤ b) (k : c ≤ d) : a + c ≤ b + d := by
  apply Nat.add_le_add
  · exact h
  · exact k

theorem lt_irrefl' : ¬n < n := by
  intro h
  exact Nat.lt_irrefl n h

theorem lt_trans' (h : a < b) (k : b < c) : a < c := by
  apply Nat.lt_trans
  · exact h
  · exact k

theorem not_lt_zero' : ¬n < 0 := by
  intro h
  cases h

theorem zero_lt_succ' : 0 < n + 1 := by
  apply Nat.lt_succ_of_le
  exact Nat.zero_le n

theorem pos_of_ne (h : n ≠ 0) : 0 < n := by
  cases n with
  | zero => exact absurd rfl h
  | succ n => exact Nat.succ_pos n

theorem ne_of_pos (h : 0 < n) : n ≠ 0 := by
  intro e
  rw [e] at h
  exact Nat.lt_irrefl 0 h

theorem le_antisymm' (h : a ≤ b) (k : b ≤ a) : a = b := by
  apply Nat.le_antisymm
  · exact h
  · exact k

theorem le_or_gt' : a ≤ b ∨ b < a := by
  cases Nat.lt_or_ge b a with
  | inl h => exact Or.inr h
  | inr h => exact Or.inl h

theorem lt_or_eq' (h : a ≤ b) : a < b ∨ a = b := by
  cases Nat.eq_or_lt_of_le h with
  | inl e => exact Or.inr e
  | inr l => exact Or.inl l

theorem trichotomy : a < b ∨ a = b ∨ b < a := by
  rcases Nat.lt_trichotomy a b with h | h | h
  · exact Or.inl h
  · exact Or.inr (Or.inl h)
  · exact Or.inr (Or.inr h)

theorem succ_inj' (h : a + 1 = b + 1) : a = b := by
  injection h

theorem zero_ne_succ : 0 ≠ n + 1 := by
  intro h
  contradiction

theorem pred_le' : n - 1 ≤ n := by
  cases n with
  | zero => exact Nat.le_refl 0
  | succ n => exact Nat.le_succ n

theorem sub_self' : n - n = 0 := by
  induction n with
  | zero => rfl
  | succ n ih => simp

theorem sub_zero' : n - 0 = n := by
  cases n
  · rfl
  · rfl

theorem sub_add_back (h : b ≤ a) : a - b + b = a := by
  rw [Nat.sub_add_cancel]
  exact h

theorem add_sub_back : a + b - b = a := by
  rw [Nat.add_sub_assoc (Nat.le_refl b)]
  rw [Nat.sub_self]
  rfl

theorem sub_sub' : a - b - c = a - (b + c) := by
  rw [Nat.sub_sub]

theorem sub_le_of (h : a ≤ b + c) : a - b ≤ c := by
  rw [Nat.sub_le_iff_le_add]
  rw [Nat.add_comm]
  exact h

theorem max_comm' : max a b = max b a := by
  simp only [Nat.max_def]
  split <;> split <;> omega

theorem min_le_both : min a b ≤ a ∧ min a b ≤ b := by
  constructor
  · exact Nat.min_le_left a b
  · exact Nat.min_le_right a b

theorem le_max_both : a ≤ max a b ∧ b ≤ max a b := by
  constructor
  · exact Nat.le_max_left a b
  · exact Nat.le_max_right a b

theorem min_add_max : min a b + max a b = a + b := by
  rcases Nat.le_total a b with h | h
  · rw [Nat.min_eq_left h, Nat.max_eq_right h]
  · rw [Nat.min_eq_right h, Nat.max_eq_left h, Nat.add_comm]

theorem even_add (h : a % 2 = 0) (k : b % 2 = 0) : (a + b) % 2 = 0 := by
  rw [Nat.add_mod]
  rw [h, k]

theorem odd_add_odd (h : a % 2 = 1) (k : b % 2 = 1) : (a + b) % 2 = 0 := by
  rw [Nat.add_mod]
  rw [h, k]

theorem even_mul (h : a % 2 = 0) : (a * b) % 2 = 0 := by
  rw [Nat.mul_mod]
  rw [h]
  simp

theorem mod_two_cases : n % 2 = 0 ∨ n % 2 = 1 := by
  have h : n % 2 < 2 := Nat.mod_lt n (by decide)
  omega

theorem double_even : (2 * n) % 2 = 0 := by
  rw [Nat.mul_comm]
  exact Nat.mul_mod_left n 2

theorem div_self' (h : 0 < n) : n / n = 1 := by
  rw [Nat.div_self]
  exact h

theorem dvd_trans' (h : a ∣ b) (k : b ∣ c) : a ∣ c := by
  obtain ⟨x, rfl⟩ := h
  obtain ⟨y, rfl⟩ := k
  exact ⟨x * y, Nat.mul_assoc a x y⟩

theorem dvd_add' (h : a ∣ b) (k : a ∣ c) : a ∣ b + c := by
  obtain ⟨x, rfl⟩ := h
  obtain ⟨y, rfl⟩ := k
  exact ⟨x + y, (Nat.mul_add a x y).symm⟩

theorem dvd_mul_extra (h : a ∣ b) : a ∣ b * c := by
  obtain ⟨x, rfl⟩ := h
  refine ⟨x * c, ?_⟩
  rw [Nat.mul_assoc]

theorem one_dvd' : 1 ∣ n := by
  refine ⟨n, ?_⟩
  rw [Nat.one_mul]

theorem dvd_zero' : n ∣ 0 := by
  refine ⟨0, ?_⟩
  rfl

theorem exists_bigger : ∃ m, n < m := by
  refine ⟨n + 1, ?_⟩
  exact Nat.lt_succ_self n

theorem exists_sum (h : a ≤ b) : ∃ c, b = a + c := by
  refine ⟨b - a, ?_⟩
  omega

theorem mul_le_both (h : a ≤ b) (k : c ≤ d) : a * c ≤ b * d := by
  apply Nat.mul_le_mul
  · exact h
  · exact k

theorem mul_pos_both (h : 0 < a) (k : 0 < b) : 0 < a * b := by
  apply Nat.mul_pos
  · exact h
  · exact k

theorem eq_zero_of_mul (h : a * b = 0) (k : a ≠ 0) : b = 0 := by
  cases Nat.mul_eq_zero.mp h with
  | inl ha => exact absurd ha k
  | inr hb => exact hb

theorem strong (P : Nat → Prop) (h : ∀ n, (∀ m, m < n → P m) → P n) : ∀ n, P n := by
  intro n
  induction n using Nat.strongRecOn with
  | ind n ih => exact h n ih

theorem two_step (P : Nat → Prop) (h0 : P 0) (h1 : P 1) (h : ∀ n, P n → P (n + 2)) (m : Nat) : P m ∧ P (m + 1) := by
  induction m with
  | zero => exact ⟨h0, h1⟩
  | succ m ih => exact ⟨ih.2, h m ih.1⟩

/-- The sum of the numbers up to `n`. -/
def sumTo : Nat → Nat
  | 0 => 0
  | n + 1 => sumTo n + (n + 1)

theorem sumTo_zero : sumTo 0 = 0 := by
  rfl

theorem sumTo_succ : sumTo (n + 1) = sumTo n + (n + 1) := by
  rfl

theorem sumTo_formula : 2 * sumTo n = n * (n + 1) := by
  induction n with
  | zero => rfl
  | succ n ih =>
    rw [sumTo_succ, Nat.mul_add, ih]
    rw [← Nat.add_mul]
    rw [Nat.mul_comm]

theorem sumTo_le : n ≤ sumTo n := by
  cases n with
  | zero => exact Nat.le_refl 0
  | succ n =>
    rw [sumTo_succ]
    omega

theorem sumTo_mono : sumTo n ≤ sumTo (n + 1) := by
  rw [sumTo_succ]
  exact Nat.le_add_right _ _

/-- The factorial. -/
def fact : Nat → Nat
  | 0 => 1
  | n + 1 => (n + 1) * fact n

theorem fact_succ : fact (n + 1) = (n + 1) * fact n := by
  rfl

theorem fact_pos : 0 < fact n := by
  induction n with
  | zero => decide
  | succ n ih =>
    rw [fact_succ]
    exact Nat.mul_pos (Nat.succ_pos n) ih

theorem fact_ne_zero : fact n ≠ 0 := by
  apply Nat.pos_iff_ne_zero.mp
  exact fact_pos n

theorem dvd_fact_succ : n + 1 ∣ fact (n + 1) := by
  rw [fact_succ]
  exact ⟨fact n, rfl⟩

theorem fact_dvd_succ : fact n ∣ fact (n + 1) := by
  rw [fact_succ]
  refine ⟨n + 1, ?_⟩
  rw [Nat.mul_comm]

end Library.Nat
