/- Lean 4.28.0 has the message of a trace's node made when it is wanted; the package, which is a little older, takes it as
it is. Aesop's own name is found first. -/
private def Aesop.withTraceNodeBefore {α ε : Type} {m : Type → Type} [Monad m] [Lean.MonadTrace m] [Lean.MonadRef m]
    [Lean.AddMessageContext m] [Lean.MonadOptions m] [Lean.MonadAlwaysExcept ε m] [MonadLiftT BaseIO m]
    [Lean.ExceptToEmoji ε α] (cls : Lean.Name) (msg : Unit → m Lean.MessageData) (k : m α) (collapsed := true) : m α :=
  Lean.withTraceNodeBefore cls (msg ()) k collapsed
