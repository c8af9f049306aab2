/-! Optional values. -/

namespace Library.Option

variable {α β γ : Type} (o p : Option α) (f : α → β) (g : β → γ)

theorem map_none' : (none : Option α).map f = none := by
  rfl

theorem map_some' (a : α) : (some a).map f = some (f a) := by
  rfl

theorem map_id' : o.map id = o := by
  cases o
  · rfl
  · rfl

theorem map_comp : (o.map f).map g = o.map (g ∘ f) := by
  cases o
  · rfl
  · rfl

theorem map_isSome : (o.map f).isSome = o.isSome := by
  cases o
  · rfl
  · rfl

theorem map_isNone : (o.map f).isNone = o.isNone := by
  cases o
  · rfl
  · rfl

theorem isSome_not_isNone : o.isSome = !o.isNone := by
  cases o
  · rfl
  · rfl

theorem isNone_iff : o.isNone = true ↔ o = none := by
  cases o
  · simp
  · simp

theorem isSome_iff : o.isSome = true ↔ ∃ a, o = some a := by
  cases o
  · simp
  · simp

theorem bind_none' (h : α → Option β) : (none : Option α).bind h = none := by
  rfl

theorem bind_some' (a : α) (h : α → Option β) : (some a).bind h = h a := by
  rfl

theorem bind_some_right : o.bind some = o := by
  cases o
  · rfl
  · rfl

theorem bind_assoc' (h : α → Option β) (k : β → Option γ) : (o.bind h).bind k = o.bind (fun a => (h a).bind k) := by
  cases o
  · rfl
  · rfl

theorem bind_map (k : β → Option γ) : (o.map f).bind k = o.bind (fun a => k (f a)) := by
  cases o
  · rfl
  · rfl

theorem map_as_bind : o.map f = o.bind (fun a => some (f a)) := by
  cases o
  · rfl
  · rfl

theorem some_inj' {a b : α} (h : some a = some b) : a = b := by
  injection h

theorem some_ne_none' (a : α) : some a ≠ none := by
  intro h
  contradiction

theorem none_ne_some (a : α) : none ≠ some a := by
  intro h
  cases h

theorem eq_none_or_some : o = none ∨ ∃ a, o = some a := by
  cases o with
  | none => exact Or.inl rfl
  | some a => exact Or.inr ⟨a, rfl⟩

theorem getD_none (d : α) : (none : Option α).getD d = d := by
  rfl

theorem getD_some (a d : α) : (some a).getD d = a := by
  rfl

theorem getD_map (d : α) : (o.map f).getD (f d) = f (o.getD d) := by
  cases o
  · rfl
  · rfl

theorem getD_of_eq (a d : α) (h : o = some a) : o.getD d = a := by
  rw [h]
  rfl

theorem orElse_none : (o <|> none) = o := by
  cases o
  · rfl
  · rfl

theorem none_orElse : (none <|> o) = o := by
  cases o
  · rfl
  · rfl

theorem some_orElse (a : α) : (some a <|> o) = some a := by
  rfl

theorem orElse_assoc' (q : Option α) : ((o <|> p) <|> q) = (o <|> (p <|> q)) := by
  cases o
  · rfl
  · rfl

theorem orElse_isSome (h : o.isSome = true) : (o <|> p) = o := by
  cases o with
  | none => cases h
  | some a => rfl

theorem map_injective (hf : ∀ a b, f a = f b → a = b) (h : o.map f = p.map f) : o = p := by
  cases o <;> cases p <;> simp_all
  apply hf
  exact h

theorem map_eq_some (b : β) (h : o.map f = some b) : ∃ a, o = some a ∧ f a = b := by
  cases o with
  | none => cases h
  | some a => exact ⟨a, rfl, Option.some.inj h⟩

theorem map_eq_none (h : o.map f = none) : o = none := by
  cases o with
  | none => rfl
  | some a => cases h

theorem filter_none (q : α → Bool) : (none : Option α).filter q = none := by
  rfl

theorem filter_true : o.filter (fun _ => true) = o := by
  cases o
  · rfl
  · rfl

theorem filter_some_pos (q : α → Bool) (a : α) (h : q a = true) : (some a).filter q = some a := by
  simp only [Option.filter]
  rw [if_pos h]

theorem all_some {P : Option α → Prop} (hn : P none) (hs : ∀ a, P (some a)) : P o := by
  cases o with
  | none => exact hn
  | some a => exact hs a

theorem ext_some (h : ∀ a, o = some a ↔ p = some a) : o = p := by
  cases p with
  | none =>
    cases o with
    | none => rfl
    | some a => exact absurd ((h a).mp rfl) (by simp)
  | some a => exact (h a).mpr rfl

end Library.Option
