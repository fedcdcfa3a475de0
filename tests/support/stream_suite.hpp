// SPDX-License-Identifier: Apache-2.0
// Tests of streams, events and host work for devices of kind cuda: GPUs and the fake one. A program that runs them
// compiles stream_suite.cpp and defines streams_to_test() and make_streams().
//
// Ownership: the fixture owns the device; memory is freed after the streams. Blocking: finish() and values() wait for
// the stream. A missing device is skipped with the reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "triax/device.hpp"

namespace triax::test {

/// A device, and work for its streams that runs until let_end().
class StreamsUnderTest {
 public:
  virtual ~StreamsUnderTest() = default;
  virtual Device& device() = 0;
  virtual void keep_busy(Stream& stream) = 0;
  /// Ends all work of keep_busy(). Can be called repeatedly.
  virtual void let_end() = 0;
};

// Defined by the program: names of the devices, and one of them; null with the reason if it is missing.
std::vector<std::string> streams_to_test();
std::unique_ptr<StreamsUnderTest> make_streams(const std::string& name, std::string& reason);

class StreamSuite : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    of_ = make_streams(GetParam(), reason);
    if (!of_) GTEST_SKIP() << reason;
    device = &of_->device();
    device->set_default_timeout(60);
    stream = device->make_stream("test");
    // Loading at first use may wait for work that still runs; load everything before the tests.
    const TensorView warm = place(DType::f32, {1}), integer = place(DType::i32, {1});
    device->fill(warm, 1, *stream);
    device->fill(integer, 1, *stream);
    device->add(warm, warm, *stream);
    device->add(integer, integer, *stream);
    finish();
  }
  void TearDown() override {
    if (!of_) return;
    let_end(); // also if a test failed earlier
    if (stream && !device->abort_flag().raised()) finish();
  }

  void keep_busy(Stream& busy) { of_->keep_busy(busy); }
  void let_end() { of_->let_end(); }
  void finish() { device->wait(stream->record(), deadline_in(60)); }

  /// Memory that lives as long as the test.
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
