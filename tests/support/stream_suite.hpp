// The tests of streams, events and host work on them, for devices of kind cuda: a GPU's and the fake one. A program
// that runs them compiles stream_suite.cpp and says which devices there are.
//
// Threads: the test's. Ownership: the fixture owns the device; memory goes after the streams. Blocking: finish() and
// values() wait for the stream. Errors: a device that is not there is skipped with its reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "triax/device.hpp"

namespace triax::test {

/// A device, and work for its streams that runs until it is let end.
class StreamsUnderTest {
 public:
  virtual ~StreamsUnderTest() = default;
  virtual Device& device() = 0;
  virtual void hold(Stream& stream) = 0;
  /// All that was put by hold(). More than once, too.
  virtual void let_end() = 0;
};

// Of the program: names for the devices, and one of them, or null with the reason why it is not there.
std::vector<std::string> streams_to_test();
std::unique_ptr<StreamsUnderTest> make_streams(const std::string& name, std::string& reason);

class StreamSuite : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    of_ = make_streams(GetParam(), reason);
    if (!of_) GTEST_SKIP() << reason;
    device = &of_->device();
    device->set_patience(60);
    stream = device->make_stream("test");
    // What is loaded when it is used first may wait for work that is held: not in the tests.
    const TensorView warm = place(DType::f32, {1}), integer = place(DType::i32, {1});
    device->fill(warm, 1, *stream);
    device->fill(integer, 1, *stream);
    device->add(warm, warm, *stream);
    device->add(integer, integer, *stream);
    finish();
  }
  void TearDown() override {
    if (!of_) return;
    let_end(); // also where a test failed before it came to that
    if (stream && !device->interrupt().raised()) finish();
  }

  void hold(Stream& held) { of_->hold(held); }
  void let_end() { of_->let_end(); }
  void finish() { device->wait(stream->record(), deadline_in(60)); }

  /// Memory that goes with the test.
  TensorView place(DType dtype, const Shape& shape, MemoryKind kind = MemoryKind::device) {
    memory_.push_back(device->allocate(TensorView(nullptr, dtype, shape).bytes(), kind));
    return {memory_.back()->data(), dtype, shape};
  }
  template <class T>
  std::vector<T> values(const TensorView& view) {
    std::vector<T> out(static_cast<std::size_t>(view.elements()));
    device->download({out.data(), view.dtype(), view.shape()}, view, *stream);
    finish();
    return out;
  }

 private:
  std::unique_ptr<StreamsUnderTest> of_;
  std::vector<std::unique_ptr<Memory>> memory_;

 protected:
  Device* device = nullptr;
  std::unique_ptr<Stream> stream;
};

} // namespace triax::test
