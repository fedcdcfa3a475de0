// SPDX-License-Identifier: Apache-2.0
// State: what a new object needs to continue.
#include <string>

#include "base/printable.hpp"
#include "optimizer_check_tables.hpp"
#include "triax/saved_state.hpp"

namespace triax::conformance {

namespace {

constexpr std::size_t kMaxStateBytes = std::size_t{64} << 10;

void new_objects_continue(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper through(subject, types), continued(subject, types);
    through.steps(4);
    continued.steps(2);
    continued.replace_optimizer();
    continued.steps(2);
    expect_equal(report, types, "if a new object continues after two of four steps", continued.tensors(),
                 through.tensors());
  });
}

std::string unless_saves_state(const OptimizerSubject& subject) {
  return subject.saves_state ? "" : "the optimizer does not offer SavedState";
}

SavedState& saved_state_of(Stepper& stepper) {
  SavedState* const out = find_extension<SavedState>(stepper.optimizer());
  if (!out) throw Error("one object offers SavedState, but another does not");
  return *out;
}

void saved_state_comes_back(const OptimizerSubject& subject, Report& report) {
  const StepTypes types{accepted_types(subject).front(), {}};
  Stepper one(subject, types), other(subject, types);
  one.steps(3);
  other.steps(3);
  const auto state_of = [](Stepper& of) { return saved_state_of(of).save(); };
  const std::string saved = state_of(one);
  report.expect(saved.size() <= kMaxStateBytes, "save() gives {} bytes, must be at most {}", saved.size(),
                kMaxStateBytes);
  report.expect(is_utf8(saved), "save() gives invalid UTF-8");
  report.expect(state_of(other) == saved, "save() of two objects after the same steps gives \"{}\" and \"{}\"", saved,
                state_of(other));
  one.replace_optimizer();
  report.expect(state_of(one) == saved, "save() after load() gives \"{}\", must be \"{}\"", state_of(one), saved);
}

void unreadable_state_is_an_error(const OptimizerSubject& subject, Report& report) {
  Stepper stepper(subject, {accepted_types(subject).front(), {}});
  SavedState& state = saved_state_of(stepper);
  for (const char* const unreadable : {"", "{", "-", "not a saved state"}) {
    try {
      state.load(unreadable);
    } catch (const Error&) { // as it must be; a text that it can read is not an error
    } catch (const std::exception& error) {
      report.fail(text("load(\"{}\") throws an exception that is not an Error: {}", unreadable, error.what()));
    }
  }
}

constexpr OptimizerCheck kStateChecks[] = {
    {"Continue.NewObjectHasEqualBits", "O18", nullptr, new_objects_continue},
    {"SavedState.ComesBack", "O19", unless_saves_state, saved_state_comes_back},
    {"SavedState.UnreadableIsAnError", "O19", unless_saves_state, unreadable_state_is_an_error},
};

} // namespace

std::span<const OptimizerCheck> state_checks() {
  return kStateChecks;
}

} // namespace triax::conformance
