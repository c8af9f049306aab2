/-! Lists: append, map, reverse, length, membership, folds. -/

namespace Library.List

variable {α β γ : Type} (xs ys zs : List α) (f : α → β) (g : β → γ)

theorem nil_append' : [] ++ xs = xs := by
  rfl

theorem append_nil' : xs ++ [] = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.cons_append, ih]

theorem append_assoc' : (xs ++ ys) ++ zs = xs ++ (ys ++ zs) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.cons_append, List.cons_append, ih, List.cons_append]

theorem cons_append' (x : α) : (x :: xs) ++ ys = x :: (xs ++ ys) := by
  rfl

theorem length_nil' : ([] : List α).length = 0 := by
  rfl

theorem length_cons' (x : α) : (x :: xs).length = xs.length + 1 := by
  rfl

theorem length_append' : (xs ++ ys).length = xs.length + ys.length := by
  induction xs with
  | nil => simp
  | cons x xs ih =>
    simp only [List.cons_append, List.length_cons, ih]
    omega

theorem length_map' : (xs.map f).length = xs.length := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [List.map_cons, List.length_cons, ih]
    rfl

theorem map_id' : xs.map id = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [List.map_cons, ih]
    rfl

theorem map_map' : (xs.map f).map g = xs.map (fun x => g (f x)) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp

theorem map_append' : (xs ++ ys).map f = xs.map f ++ ys.map f := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.cons_append, List.map_cons, ih, List.map_cons, List.cons_append]

theorem map_const_length (b : β) : (xs.map (fun _ => b)).length = xs.length := by
  rw [List.length_map]

theorem map_eq_nil (h : xs.map f = []) : xs = [] := by
  cases xs with
  | nil => rfl
  | cons x xs => cases h

theorem reverse_nil' : ([] : List α).reverse = [] := by
  rfl

theorem reverse_single (x : α) : [x].reverse = [x] := by
  rfl

theorem reverse_append' : (xs ++ ys).reverse = ys.reverse ++ xs.reverse := by
  induction xs with
  | nil => simp
  | cons x xs ih => simp

theorem reverse_twice : xs.reverse.reverse = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [List.reverse_cons, List.reverse_append, ih]
    rfl

theorem reverse_inj' (h : xs.reverse = ys.reverse) : xs = ys := by
  rw [← List.reverse_reverse xs]
  rw [h]
  rw [List.reverse_reverse]

theorem length_reverse' : xs.reverse.length = xs.length := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp

theorem map_reverse' : xs.reverse.map f = (xs.map f).reverse := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [List.reverse_cons, List.map_append, ih]
    simp

theorem mem_cons_self' (x : α) : x ∈ x :: xs := by
  rw [List.mem_cons]
  left
  rfl

theorem mem_cons_tail (x y : α) (h : x ∈ xs) : x ∈ y :: xs := by
  rw [List.mem_cons]
  right
  exact h

theorem not_mem_nil' (x : α) : x ∉ ([] : List α) := by
  intro h
  cases h

theorem mem_append_left' (x : α) (h : x ∈ xs) : x ∈ xs ++ ys := by
  rw [List.mem_append]
  exact Or.inl h

theorem mem_append_right' (x : α) (h : x ∈ ys) : x ∈ xs ++ ys := by
  rw [List.mem_append]
  exact Or.inr h

theorem mem_append_cases (x : α) (h : x ∈ xs ++ ys) : x ∈ xs ∨ x ∈ ys := by
  rw [List.mem_append] at h
  exact h

theorem mem_map_of (x : α) (h : x ∈ xs) : f x ∈ xs.map f := by
  rw [List.mem_map]
  exact ⟨x, h, rfl⟩

theorem mem_map_back (y : β) (h : y ∈ xs.map f) : ∃ x, x ∈ xs ∧ f x = y := by
  rw [List.mem_map] at h
  obtain ⟨x, hx, e⟩ := h
  exact ⟨x, hx, e⟩

theorem mem_reverse' (x : α) (h : x ∈ xs) : x ∈ xs.reverse := by
  rw [List.mem_reverse]
  exact h

theorem mem_single (x y : α) (h : x ∈ [y]) : x = y := by
  rw [List.mem_cons] at h
  cases h with
  | inl e => exact e
  | inr n => cases n

theorem ne_nil_of_mem (x : α) (h : x ∈ xs) : xs ≠ [] := by
  intro e
  rw [e] at h
  cases h

theorem length_pos_of_mem (x : α) (h : x ∈ xs) : 0 < xs.length := by
  cases xs with
  | nil => cases h
  | cons y ys => exact Nat.succ_pos _

theorem eq_nil_of_length (h : xs.length = 0) : xs = [] := by
  cases xs with
  | nil => rfl
  | cons x xs => cases h

theorem cons_inj_head (x y : α) (h : x :: xs = y :: ys) : x = y := by
  injection h

theorem cons_inj_tail (x y : α) (h : x :: xs = y :: ys) : xs = ys := by
  injection h

theorem cons_ne_nil' (x : α) : x :: xs ≠ [] := by
  intro h
  contradiction

theorem append_left_cancel' (h : xs ++ ys = xs ++ zs) : ys = zs := by
  induction xs with
  | nil => exact h
  | cons x xs ih =>
    apply ih
    injection h

theorem append_eq_nil_left (h : xs ++ ys = []) : xs = [] := by
  cases xs with
  | nil => rfl
  | cons x xs => cases h

theorem head_tail (x : α) : (x :: xs).head? = some x := by
  rfl

theorem tail_cons' (x : α) : (x :: xs).tail = xs := by
  rfl

theorem length_tail' : xs.tail.length = xs.length - 1 := by
  cases xs
  · rfl
  · rfl

theorem take_zero' : xs.take 0 = [] := by
  cases xs
  · rfl
  · rfl

theorem drop_zero' : xs.drop 0 = xs := by
  cases xs
  · rfl
  · rfl

theorem take_append_drop' (n : Nat) : xs.take n ++ xs.drop n = xs := by
  induction n generalizing xs with
  | zero => simp
  | succ n ih =>
    cases xs with
    | nil => rfl
    | cons x xs => simp

theorem take_nil' (n : Nat) : ([] : List α).take n = [] := by
  cases n
  · rfl
  · rfl

theorem foldr_cons_nil : xs.foldr (fun x acc => x :: acc) [] = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.foldr_cons, ih]

theorem foldr_append' (h : α → β → β) (b : β) : (xs ++ ys).foldr h b = xs.foldr h (ys.foldr h b) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.cons_append, List.foldr_cons, ih, List.foldr_cons]

theorem foldl_append' (h : β → α → β) (b : β) : (xs ++ ys).foldl h b = ys.foldl h (xs.foldl h b) := by
  induction xs generalizing b with
  | nil => rfl
  | cons x xs ih =>
    rw [List.cons_append, List.foldl_cons]
    rw [ih]
    rfl

theorem replicate_zero' (x : α) : List.replicate 0 x = [] := by
  rfl

theorem replicate_succ' (x : α) (n : Nat) : List.replicate (n + 1) x = x :: List.replicate n x := by
  rfl

theorem length_replicate' (x : α) (n : Nat) : (List.replicate n x).length = n := by
  induction n with
  | zero => rfl
  | succ n ih => rw [List.replicate_succ, List.length_cons, ih]

theorem filter_true' : xs.filter (fun _ => true) = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp

theorem filter_append' (p : α → Bool) : (xs ++ ys).filter p = xs.filter p ++ ys.filter p := by
  rw [List.filter_append]

theorem length_filter_le' (p : α → Bool) : (xs.filter p).length ≤ xs.length := by
  induction xs with
  | nil => exact Nat.le_refl 0
  | cons x xs ih =>
    rw [List.filter_cons]
    split
    · exact Nat.succ_le_succ ih
    · exact Nat.le_succ_of_le ih

theorem all_of_forall (p : α → Bool) (h : ∀ x, x ∈ xs → p x = true) : xs.all p = true := by
  rw [List.all_eq_true]
  exact h

theorem forall_of_all (p : α → Bool) (h : xs.all p = true) (x : α) (hx : x ∈ xs) : p x = true := by
  rw [List.all_eq_true] at h
  exact h x hx

theorem any_of_mem (p : α → Bool) (x : α) (hx : x ∈ xs) (h : p x = true) : xs.any p = true := by
  rw [List.any_eq_true]
  exact ⟨x, hx, h⟩

/-- The sum of a list, by recursion. -/
def total : List Nat → Nat
  | [] => 0
  | n :: ns => n + total ns

theorem total_cons (n : Nat) (ns : List Nat) : total (n :: ns) = n + total ns := by
  rfl

theorem total_append (ms ns : List Nat) : total (ms ++ ns) = total ms + total ns := by
  induction ms with
  | nil => simp [total]
  | cons m ms ih =>
    rw [List.cons_append, total_cons, ih, total_cons]
    rw [Nat.add_assoc]

theorem total_single (n : Nat) : total [n] = n := by
  rw [total_cons]
  rfl

theorem total_reverse (ns : List Nat) : total ns.reverse = total ns := by
  induction ns with
  | nil => rfl
  | cons n ns ih =>
    rw [List.reverse_cons, total_append, ih, total_single]
    rw [total_cons, Nat.add_comm]

theorem total_zeros (n : Nat) : total (List.replicate n 0) = 0 := by
  induction n with
  | zero => rfl
  | succ n ih => rw [List.replicate_succ, total_cons, ih]

theorem le_total (n : Nat) (ns : List Nat) (h : n ∈ ns) : n ≤ total ns := by
  induction ns with
  | nil => cases h
  | cons m ms ih =>
    rw [total_cons]
    rw [List.mem_cons] at h
    rcases h with e | t
    · omega
    · exact Nat.le_trans (ih t) (Nat.le_add_left _ _)

end Library.List
