// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/gpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::requests {
namespace {

using testing::HasSubstr;

// "2 of v100, and mps:50"
std::string ListText(const Result<GpuList>& list) {
  if (!list.ok()) {
    return list.error().message;
  }
  std::string text = std::to_string(list.value().count);
  text += list.value().type.empty() ? "" : " of " + list.value().type;
  for (const std::string& other : list.value().others) {
    text += ", and " + other;
  }
  return text;
}

TEST(GpuListTest, ListsOfGresHaveGpusAndOthers) {
  EXPECT_EQ(ListText(ReadGres("gpu")), "1");
  EXPECT_EQ(ListText(ReadGres("gpu:4")), "4");
  EXPECT_EQ(ListText(ReadGres("gpu:a100:4")), "4 of a100");
  EXPECT_EQ(ListText(ReadGres("gpu:a100")), "1 of a100");
  EXPECT_EQ(ListText(ReadGres("gpu:2,lscratch:3")), "2, and lscratch:3");
  EXPECT_EQ(ListText(ReadGres("gpu:k80:1,lscratch:2")), "1 of k80, and lscratch:2");
  EXPECT_EQ(ListText(ReadGres("lscratch:200,gpu:p100:2")), "2 of p100, and lscratch:200");
  EXPECT_EQ(ListText(ReadGres("gpu:v100:2(S:0-1)")), "2 of v100, and (S:0-1)");
  EXPECT_EQ(ListText(ReadGres("gpu:2(S:0,1),nvme:1T")), "2, and (S:0,1), and nvme:1T");
  EXPECT_EQ(ListText(ReadGres("gpu(S:0)")), "1, and (S:0)");
  EXPECT_EQ(ListText(ReadGres("gres:gpu:2")), "2");
  EXPECT_EQ(ListText(ReadGres("gres/gpu:a40:3,gres/shard:4")), "3 of a40, and shard:4");
  EXPECT_EQ(ListText(ReadGres("bandwidth:lustre:no_consume:4g,gpu:1")),
            "1, and bandwidth:lustre:no_consume:4g");
}

TEST(GpuListTest, ListsOfGpusHaveThemToo) {
  EXPECT_EQ(ListText(ReadGpus("8")), "8");
  EXPECT_EQ(ListText(ReadGpus("v100:2")), "2 of v100");
  EXPECT_EQ(ListText(ReadGpus("v100:2,mps:50")), "2 of v100, and mps:50");
  EXPECT_EQ(ListText(ReadGpus("2,lscratch:3")), "2, and lscratch:3");
  EXPECT_EQ(ListText(ReadGpus("shard:1,a100_80gb:2(S:1)")),
            "2 of a100_80gb, and shard:1, and (S:1)");
}

TEST(GpuListTest, SeveralTypesAndWhatIsNoCountAreRefused) {
  EXPECT_THAT(ListText(ReadGres("gpu:a100:1,gpu:v100:1")), HasSubstr("and these are of several"));
  EXPECT_THAT(ListText(ReadGpus("volta:2,kepler:1")), HasSubstr("and these are of several"));
  EXPECT_THAT(ListText(ReadGpus("2,v100:1")), HasSubstr("and these are of several"));
  EXPECT_THAT(ListText(ReadGres("gpu:2,gpu:2")), HasSubstr("GPUs are there twice"));
  EXPECT_EQ(ListText(ReadGres("tpu:4")),
            "no GPUs; expected gpu:N or gpu:TYPE:N, with other resources behind a comma");
  EXPECT_EQ(ListText(ReadGpus("mps:50")), "no GPUs; expected N or TYPE:N");
  for (const char* const text :
       {"", "gpu:", "gpu:a100:", "gpu::2", "gpu:-1", "gpu:1.5", "gpu:a100:b", "gpu:a:b:2", "gpu:2,",
        ",gpu:2", "gpu:2(S:0", "gpu:99999999999999999999", "gpu:2:4"}) {
    EXPECT_FALSE(ReadGres(text).ok()) << text;
  }
  for (const char* const text :
       {"", "none", "a100", "-1", "a100:", ":2", "2:4", "1e99", "a100:2,", "2(", "a:b:2"}) {
    EXPECT_FALSE(ReadGpus(text).ok()) << text;
  }
}

}  // namespace
}  // namespace trainyard::requests
