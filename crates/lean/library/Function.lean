/-! Functions: composition, injections, surjections, and relations. -/

namespace Library.Function

variable {α β γ : Type} (f : α → β) (g : β → γ)

/-- Different arguments, different values. -/
def Injective (f : α → β) : Prop := ∀ x y, f x = f y → x = y

/-- Every value is taken. -/
def Surjective (f : α → β) : Prop := ∀ y, ∃ x, f x = y

theorem comp_id' : f ∘ id = f := by
  rfl

theorem id_comp' : id ∘ f = f := by
  rfl

theorem comp_assoc' {δ : Type} (h : γ → δ) : (h ∘ g) ∘ f = h ∘ (g ∘ f) := by
  rfl

theorem comp_apply' (x : α) : (g ∘ f) x = g (f x) := by
  rfl

theorem injective_id : Injective (id : α → α) := by
  intro x y h
  exact h

theorem surjective_id : Surjective (id : α → α) := by
  intro y
  exact ⟨y, rfl⟩

theorem injective_comp (hf : Injective f) (hg : Injective g) : Injective (g ∘ f) := by
  intro x y h
  apply hf
  apply hg
  exact h

theorem surjective_comp (hf : Surjective f) (hg : Surjective g) : Surjective (g ∘ f) := by
  intro z
  obtain ⟨y, hy⟩ := hg z
  obtain ⟨x, hx⟩ := hf y
  refine ⟨x, ?_⟩
  rw [comp_apply', hx, hy]

theorem injective_of_comp (h : Injective (g ∘ f)) : Injective f := by
  intro x y e
  apply h
  rw [comp_apply', comp_apply', e]

theorem surjective_of_comp (h : Surjective (g ∘ f)) : Surjective g := by
  intro z
  obtain ⟨x, hx⟩ := h z
  exact ⟨f x, hx⟩

theorem injective_of_inverse (k : β → α) (h : ∀ x, k (f x) = x) : Injective f := by
  intro x y e
  rw [← h x, ← h y]
  rw [e]

theorem surjective_of_inverse (k : β → α) (h : ∀ y, f (k y) = y) : Surjective f := by
  intro y
  refine ⟨k y, ?_⟩
  exact h y

theorem funext_apply (h k : α → β) (e : h = k) (x : α) : h x = k x := by
  rw [e]

theorem funext_of_eq (h k : α → β) (e : ∀ x, h x = k x) : h = k := by
  funext x
  exact e x

theorem const_comp (c : γ) : (fun _ : β => c) ∘ f = fun _ => c := by
  funext x
  rfl

theorem congr_arg' (x y : α) (h : x = y) : f x = f y := by
  rw [h]

theorem congr_two {δ : Type} (h : α → β → δ) (a b : α) (c d : β) (e : a = b) (k : c = d) : h a c = h b d := by
  rw [e]
  rw [k]

theorem succ_injective : Injective Nat.succ := by
  intro x y h
  injection h

theorem cons_injective (x : α) : Injective (fun xs : List α => x :: xs) := by
  intro xs ys h
  injection h

theorem some_injective : Injective (some : α → Option α) := by
  intro x y h
  injection h

theorem pair_eta (p : α × β) : (p.1, p.2) = p := by
  cases p
  rfl

theorem pair_ext (p q : α × β) (h : p.1 = q.1) (k : p.2 = q.2) : p = q := by
  cases p
  cases q
  simp_all

theorem swap_swap (p : α × β) : (p.swap).swap = p := by
  cases p
  rfl

theorem sum_cases {P : α ⊕ β → Prop} (hl : ∀ a, P (.inl a)) (hr : ∀ b, P (.inr b)) (s : α ⊕ β) : P s := by
  cases s with
  | inl a => exact hl a
  | inr b => exact hr b

theorem sum_inl_ne_inr (a : α) (b : β) : (Sum.inl a : α ⊕ β) ≠ Sum.inr b := by
  intro h
  cases h

theorem subtype_ext {P : α → Prop} (x y : { a // P a }) (h : x.val = y.val) : x = y := by
  cases x
  cases y
  simp_all

theorem unit_eq (x y : Unit) : x = y := by
  cases x
  cases y
  rfl

theorem empty_elim (h : Empty) : False := by
  cases h

theorem fin_zero_elim (i : Fin 0) : False := by
  obtain ⟨n, h⟩ := i
  exact Nat.not_lt_zero n h

theorem iterate_two (h : α → α) (e : ∀ x, h (h x) = x) : Injective h := by
  intro x y k
  rw [← e x]
  rw [k]
  exact e y

end Library.Function
