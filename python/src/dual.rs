//! `catamount.Dual`: a number that knows how it depends on the policy.

use catamount_objective as objective;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError, PyZeroDivisionError};
use pyo3::prelude::*;

/// A probability with its derivatives by every log p_t. Add, subtract, multiply, divide and raise
/// to a power as with any number; plain numbers may be mixed in. A strategy's `selection` gets one
/// of these per step.
#[pyclass(frozen, module = "catamount")]
#[derive(Clone)]
pub struct Dual(pub objective::Dual);

/// A `Dual`, or a plain number as a constant.
pub fn operand(value: &Bound<'_, PyAny>) -> PyResult<objective::Dual> {
    if let Ok(dual) = value.cast::<Dual>() {
        return Ok(dual.get().0.clone());
    }
    match value.extract::<f64>() {
        Ok(number) if number.is_finite() => Ok(objective::Dual::constant(number)),
        Ok(number) => Err(PyValueError::new_err(format!("{number} is not a finite number"))),
        Err(_) => Err(PyTypeError::new_err(format!(
            "expected a number or a catamount.Dual, not {}",
            value.get_type()
        ))),
    }
}

fn divide(a: &objective::Dual, b: &objective::Dual) -> PyResult<Dual> {
    if b.is_zero() {
        return Err(PyZeroDivisionError::new_err("division of a Dual by zero"));
    }
    Ok(Dual(a / b))
}

#[pymethods]
impl Dual {
    /// A constant: a number that does not depend on the policy.
    #[new]
    fn new(value: f64) -> PyResult<Self> {
        if !value.is_finite() {
            return Err(PyValueError::new_err(format!("{value} is not a finite number")));
        }
        Ok(Dual(objective::Dual::constant(value)))
    }

    /// The value; 0.0 where it is too small for a float (see `log_value`).
    #[getter]
    fn value(&self) -> f64 {
        self.0.value()
    }

    /// The logarithm of the value, for values of any size.
    #[getter]
    fn log_value(&self) -> f64 {
        self.0.ln_value()
    }

    fn __float__(&self) -> f64 {
        self.0.value()
    }

    fn __repr__(&self) -> String {
        format!("Dual({})", self.0.value())
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        Ok(Dual(&self.0 + &operand(other)?))
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        Ok(Dual(&operand(other)? + &self.0))
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        Ok(Dual(&self.0 - &operand(other)?))
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        Ok(Dual(&operand(other)? - &self.0))
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        Ok(Dual(&self.0 * &operand(other)?))
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        Ok(Dual(&operand(other)? * &self.0))
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        divide(&self.0, &operand(other)?)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Dual> {
        divide(&operand(other)?, &self.0)
    }

    fn __neg__(&self) -> Dual {
        Dual(&objective::Dual::constant(0.0) - &self.0)
    }

    fn __pow__(&self, exponent: f64, modulo: Option<Bound<'_, PyAny>>) -> PyResult<Dual> {
        if modulo.is_some() {
            return Err(PyTypeError::new_err("a power of a Dual has no modulus"));
        }
        if self.0.is_zero() || self.0.value() < 0.0 {
            return Err(PyValueError::new_err("only a positive Dual has powers"));
        }
        Ok(Dual(self.0.powf(exponent)))
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<bool> {
        let difference = &self.0 - &operand(other)?;
        let sign = if difference.is_zero() { 0.0 } else { difference.value() };
        Ok(match (op, difference.is_zero()) {
            (CompareOp::Eq | CompareOp::Le | CompareOp::Ge, true) => true,
            (CompareOp::Ne | CompareOp::Lt | CompareOp::Gt, true) => false,
            (CompareOp::Eq, false) => false,
            (CompareOp::Ne, false) => true,
            // A difference too small for a float has lost its sign; its logarithm is a number only
            // where it is positive.
            (CompareOp::Lt | CompareOp::Le, false) => {
                sign < 0.0 || (sign == 0.0 && difference.ln_value().is_nan())
            }
            (CompareOp::Gt | CompareOp::Ge, false) => {
                sign > 0.0 || (sign == 0.0 && !difference.ln_value().is_nan())
            }
        })
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err(
            "a Dual is not hashable: configurations must not hold probabilities",
        ))
    }
}
