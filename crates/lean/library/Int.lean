/-! Integers: signs, order, and linear arithmetic. -/

namespace Library.Int

variable (a b c d : Int)

theorem neg_neg' : - -a = a := by
  rw [Int.neg_neg]

theorem add_neg' : a + -a = 0 := by
  rw [Int.add_right_neg]

theorem sub_self' : a - a = 0 := by
  rw [Int.sub_eq_add_neg]
  rw [Int.add_right_neg]

theorem sub_as_add : a - b = -b + a := by
  rw [Int.sub_eq_add_neg]
  rw [Int.add_comm]

theorem neg_sub' : -(a - b) = b - a := by
  rw [Int.neg_sub]

theorem add_swap : a + (b + c) = b + (a + c) := by
  rw [← Int.add_assoc]
  rw [Int.add_comm a b]
  rw [Int.add_assoc]

theorem mul_swap : a * (b * c) = b * (a * c) := by
  rw [← Int.mul_assoc]
  rw [Int.mul_comm a b]
  rw [Int.mul_assoc]

theorem mul_sub' : a * (b - c) = a * b - a * c := by
  rw [Int.sub_eq_add_neg]
  rw [Int.mul_add, Int.mul_neg]
  rw [← Int.sub_eq_add_neg]

theorem neg_mul_neg' : -a * -b = a * b := by
  rw [Int.neg_mul]
  rw [Int.mul_neg]
  rw [Int.neg_neg]

theorem two_mul' : 2 * a = a + a := by
  rw [Int.two_mul]

theorem square_sum : (a + b) * (a + b) = a * a + a * b + (b * a + b * b) := by
  rw [Int.add_mul]
  rw [Int.mul_add, Int.mul_add]

theorem square_diff : (a + b) * (a - b) = a * a - a * b + (b * a - b * b) := by
  rw [Int.add_mul]
  rw [Int.mul_sub, Int.mul_sub]

theorem le_chain (h : a ≤ b) (k : b ≤ c) (l : c ≤ d) : a ≤ d := by
  apply Int.le_trans h
  apply Int.le_trans k
  exact l

theorem le_antisymm' (h : a ≤ b) (k : b ≤ a) : a = b := by
  apply Int.le_antisymm
  · exact h
  · exact k

theorem neg_le_swap (h : a ≤ b) : -b ≤ -a := by
  apply Int.neg_le_neg
  exact h

theorem sub_nonneg' (h : b ≤ a) : 0 ≤ a - b := by
  apply Int.sub_nonneg_of_le
  exact h

theorem add_le_both (h : a ≤ b) (k : c ≤ d) : a + c ≤ b + d := by
  apply Int.add_le_add
  · exact h
  · exact k

theorem lt_succ' : a < a + 1 := by
  have h : (0 : Int) < 1 := by decide
  omega

theorem lt_irrefl' : ¬a < a := by
  intro h
  omega

theorem lt_or_ge' : a < b ∨ b ≤ a := by
  by_cases h : a < b
  · exact Or.inl h
  · exact Or.inr (Int.not_lt.mp h)

theorem trichotomy : a < b ∨ a = b ∨ b < a := by
  rcases Int.lt_trichotomy a b with h | h | h
  · exact Or.inl h
  · exact Or.inr (Or.inl h)
  · exact Or.inr (Or.inr h)

theorem le_of_sub (h : a - b ≤ 0) : a ≤ b := by
  apply Int.le_of_sub_nonpos
  exact h

theorem eq_of_sub (h : a - b = 0) : a = b := by
  apply Int.eq_of_sub_eq_zero
  exact h

theorem ofNat_nonneg (n : Nat) : (0 : Int) ≤ n := by
  exact Int.natCast_nonneg n

theorem cast_add (m n : Nat) : ((m + n : Nat) : Int) = (m : Int) + (n : Int) := by
  rw [Int.natCast_add]

theorem cast_mul (m n : Nat) : ((m * n : Nat) : Int) = (m : Int) * (n : Int) := by
  rw [Int.natCast_mul]

theorem cast_le (m n : Nat) (h : m ≤ n) : (m : Int) ≤ n := by
  rw [Int.ofNat_le]
  exact h

theorem exists_nat_of_nonneg (h : 0 ≤ a) : ∃ n : Nat, a = n := by
  refine ⟨a.toNat, ?_⟩
  rw [Int.toNat_of_nonneg h]

theorem cases_sign : 0 ≤ a ∨ 0 ≤ -a := by
  rcases Int.le_total 0 a with h | h
  · exact Or.inl h
  · right
    omega

theorem max_comm' : max a b = max b a := by
  rw [Int.max_def, Int.max_def]
  split <;> split <;> omega

theorem min_le_both : min a b ≤ a ∧ min a b ≤ b := by
  constructor
  · exact Int.min_le_left a b
  · exact Int.min_le_right a b

theorem dvd_trans' (h : a ∣ b) (k : b ∣ c) : a ∣ c := by
  obtain ⟨x, rfl⟩ := h
  obtain ⟨y, rfl⟩ := k
  exact ⟨x * y, Int.mul_assoc a x y⟩

theorem dvd_neg' (h : a ∣ b) : a ∣ -b := by
  obtain ⟨x, rfl⟩ := h
  refine ⟨-x, ?_⟩
  rw [Int.mul_neg]

theorem even_sum (h : a % 2 = 0) (k : b % 2 = 0) : (a + b) % 2 = 0 := by
  have e : (a + b) % 2 = (a % 2 + b % 2) % 2 := Int.add_emod a b 2
  rw [e, h, k]
  rfl

theorem no_half (h : 2 * a = 1) : False := by
  have k : (2 * a) % 2 = 0 := by omega
  rw [h] at k
  exact absurd k (by decide)

theorem squares_swap (h : a * a = b) (k : b = c) : c = a * a := by
  rw [← k]
  exact h.symm

theorem between (h : 0 ≤ a) (k : a < 2) : a = 0 ∨ a = 1 := by
  by_cases e : a = 0
  · exact Or.inl e
  · right
    omega

end Library.Int
