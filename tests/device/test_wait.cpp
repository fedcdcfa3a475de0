// SPDX-License-Identifier: Apache-2.0
// Device::wait: the error message for each cause.
#include <gmock/gmock.h>

#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {
namespace {

using testing::HasSubstr;

class Wait : public testing::Test {
 protected:
  std::string error_of(const Work& work, Deadline deadline) {
    try {
      device->wait(work, deadline);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::unique_ptr<Device> device = make_host_device();
  HostEvent slot;
};

TEST_F(Wait, RunsTheProgressLoopUntilTheEventFires) {
  struct Firing final : ProgressSource {
    explicit Firing(HostEvent& its_event) : event(its_event) {}
    void progress() noexcept override {
      if (++calls == 10) event.fire();
    }
    HostEvent& event;
    int calls = 0;
  } source(slot);
  device->add_source(source);
  device->wait(slot.arm(), Deadline::max());
  EXPECT_EQ(source.calls, 10);
  device->remove_source(source);
}

TEST_F(Wait, ReportsTheFailureAndTheAction) {
  const Work work{slot.arm(), 17};
  slot.fail("rank 3 was lost");
  EXPECT_EQ(error_of(work, Deadline::max()), "action 17: rank 3 was lost");
}

TEST_F(Wait, ReportsTheAbortAndTheAction) {
  device->abort_flag().raise("stopped by rank 0");
  EXPECT_EQ(error_of({slot.arm(), 5}, Deadline::max()), "action 5: stopped by rank 0");
}

TEST_F(Wait, ReportsTheDeadlineAndTheAction) {
  const std::string what = error_of({slot.arm(), 5}, deadline_in(0));
  EXPECT_THAT(what, HasSubstr("action 5: timed out"));
  EXPECT_THAT(what, HasSubstr("train.stall_timeout_s"));
}

TEST_F(Wait, TheFailureComesBeforeTheAbort) {
  const Work work{slot.arm(), kNoAction};
  slot.fail("the cause");
  device->abort_flag().raise("the consequence");
  EXPECT_EQ(error_of(work, Deadline::max()), "the cause");
}

TEST_F(Wait, AFiredEventIsEnoughPastTheDeadline) {
  EXPECT_EQ(error_of({}, deadline_in(-1)), "no error");
}

} // namespace
} // namespace triax
