// SPDX-License-Identifier: Apache-2.0
#include "plugins/planner_suite.hpp"

#include "plugins/suite_object.hpp"
#include "triax/conformance/planner_checks.hpp"

namespace triax::app {

RequestedSuite planner_suite(const SuiteRequest& request, Refusals&) {
  conformance::PlannerSubject subject;
  subject.name = request.choice.name;
  subject.planner = [library = request.choice.library, options = request.choice.options] {
    return create_for_suite<Planner>(*library, options);
  };
  return {subject.name, conformance::planner_checks(subject)};
}

} // namespace triax::app
