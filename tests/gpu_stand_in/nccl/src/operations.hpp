// SPDX-License-Identifier: Apache-2.0
// Operations of a communicator, which move when their stream's thread polls them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "communicator.hpp"

namespace triax::gpu_stand_in {

// What a call asked for. Operations are made from it whenever the stream reaches it.
struct Request {
  CommunicatorPtr communicator;
  std::string name; // "ncclAllReduce"
  bool is_collective = false;
  CollectiveCall call; // of a send or receive, the type only
  bool sends = false;  // point to point
  int peer = 0;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t input_bytes = 0, output_bytes = 0;
};

class Operation {
 public:
  explicit Operation(const Request& request) : request_(request) {}
  virtual ~Operation() = default;
  // Returns whether it is done. Throws StreamError.
  virtual bool poll() = 0;
  const Request& request() const { return request_; }

 protected:
  const Request& request_;
};

std::unique_ptr<Operation> make_operation(const Request& request);

} // namespace triax::gpu_stand_in
