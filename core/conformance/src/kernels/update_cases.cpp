// SPDX-License-Identifier: Apache-2.0
// Cases of optimizer updates and of step_control (gradient clipping, loss scaling, skipped steps).
#include <limits>

#include "case_lists.hpp"

namespace triax::conformance::cases {

namespace {

using V = const CaseViews&;
using Run = const UseCall&;

/// The master type of optimizers differs from the case's type: f32, or f64 if everything is f64.
void add_updates(CaseList& list) {
  const auto tensor = [](const char* name, Role role, double low = -1.5) {
    return CaseTensor{.name = name, .role = role, .shape = {131}, .kind = Kind::statistic, .low = low};
  };
  for (const float skip : {0.0f, 1.0f}) {
    // The very first step may be skipped, before any step was counted.
    const StepScalars scalars{.lr = 0.01f, .clip = 0.5f, .skip = skip, .step = skip != 0 ? 0 : 3};
    const Tensors tensors = {tensor("p", Role::in_out),    tensor("g", Role::in),    tensor("m", Role::in_out),
                             tensor("v", Role::in_out, 0), in_out("working", {131}), scalars_tensor(scalars)};
    const auto note = skip != 0 ? "skipped" : "taken";
    list.add(text("adamw/{}", note), tensors, [](V v, Run run) {
      run(AdamW{v["p"], v["g"], v["m"], v["v"], v["working"], 0.9, 0.95, 1e-8, 0.1, scalars_of(v)});
    });
    list.add(text("sgd/momentum {}", note), tensors, [](V v, Run run) {
      run(Sgd{v["p"], v["g"], v["m"], v["working"], 0.9, 0.1, scalars_of(v)});
    });
  }
  // An eps that is not small beside sqrt(v): with 1e-8, the tolerance of f32 would hide one that is in the square root.
  list.add("adamw/large eps",
           {tensor("p", Role::in_out), tensor("g", Role::in), tensor("m", Role::in_out), tensor("v", Role::in_out, 0),
            scalars_tensor({.lr = 0.01f, .clip = 0.5f, .step = 3})},
           [](V v, Run run) {
             run(AdamW{v["p"], v["g"], v["m"], v["v"], {}, 0.9, 0.95, 0.25, 0.1, scalars_of(v)});
           });
  const Tensors first = {tensor("p", Role::in_out), tensor("g", Role::in), tensor("m", Role::in_out),
                         scalars_tensor({.lr = 0.1f, .step = 1})};
  list.add("sgd/momentum at step 1", first, [](V v, Run run) {
    run(Sgd{v["p"], v["g"], v["m"], {}, 0.9, 0, scalars_of(v)});
  });
  list.add("sgd/plain", first, [](V v, Run run) { run(Sgd{v["p"], v["g"], {}, {}, 0, 0.1, scalars_of(v)}); });
}

constexpr LossScaling kScaling{.min = 2, .window = 3, .hysteresis = 2};

void add_step_control(CaseList& list) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  struct StepCase {
    const char* name;
    double square, loss, clip_grad;
    StepScalars now;
  };
  for (const StepCase& one :
       {StepCase{"no clipping", 0.25, 3, 0, {}}, StepCase{"clipped", 0.25, 3, 0.5, {.step = 7}},
        StepCase{"below the clip norm", 0.25, 3, 50, {.clip = 0.1f, .skip = 1, .step = 7}},
        StepCase{"clipped and unscaled", 1e9, 3, 1, {.loss_scale = 1024, .step = 1}},
        StepCase{"loss scale grows", 1e9, 3, 1, {.loss_scale = 1024, .step = 8, .good_steps = 2, .hysteresis = 0}},
        StepCase{"infinite", kInfinity, 3, 1, {.loss_scale = 1024, .step = 8, .good_steps = 2, .hysteresis = 2}},
        StepCase{"loss scale falls", kNan, 3, 1, {.loss_scale = 1024, .step = 8, .good_steps = 2, .hysteresis = 1}},
        StepCase{"at the minimum", kNan, 3, 1, {.loss_scale = 2, .hysteresis = 0}},
        StepCase{"infinite loss", 1, kInfinity, 1, {.loss_scale = 1024, .step = 8}}}) {
    CaseTensor now = scalars_tensor(one.now);
    now.role = Role::in_out;
    const Tensors tensors = {own("squares", Role::in, DType::f64, {2, 3}, {0.1, 1e-9, kNan, one.square, kNan, 1e3}),
                             own("order", Role::in, DType::i32, {4}, {5, 0, 3, 1}),
                             own("losses", Role::in, DType::f64, {2}, {one.loss, 5}), now};
    list.add(text("step_control/{}", one.name), tensors, [clip = one.clip_grad](V v, Run run) {
      run(StepControl{v["squares"], v["order"], v["losses"], v["scalars"].as<StepScalars>(), clip, kScaling});
    });
  }
}

/// More tensors than a block has threads, added in descending order.
void add_many_tensors(CaseList& list) {
  std::vector<double> squares, order;
  for (int i = 0; i < 700; ++i) {
    squares.push_back(1.0 / (1 + i * i % 97));
    order.push_back(699 - i);
  }
  CaseTensor now = scalars_tensor({.step = 7});
  now.role = Role::in_out;
  list.add("step_control/many tensors",
           {own("squares", Role::in, DType::f64, {700}, squares), own("order", Role::in, DType::i32, {700}, order),
            own("losses", Role::in, DType::f64, {300}, std::vector<double>(300, 2)), now},
           [](V v, Run run) {
             run(StepControl{v["squares"], v["order"], v["losses"], v["scalars"].as<StepScalars>(), 0.5, kScaling});
           });
}

} // namespace

void add_update_cases(CaseList& list) {
  add_updates(list);
  add_step_control(list);
  add_many_tensors(list);
}

} // namespace triax::conformance::cases
