// SPDX-License-Identifier: Apache-2.0
#include "loader/model_catalog.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace trainyard::loader {
namespace {

std::string CatalogErrorOf(std::string_view text) {
  const ScratchFolder folder;
  const auto catalog = ModelCatalog::Read(folder.Write("models.csv", text));
  if (catalog.ok()) {
    return "no error";
  }
  const std::string& message = catalog.error().message;
  return message.substr(message.rfind('/') + 1);
}

constexpr std::string_view kHeader = "model,params,C_flops,PC_flops,DC_flops,O_flops,layers\n";

std::string Table(std::string_view rows) { return std::string(kHeader).append(rows); }

TEST(ModelCatalogTest, ReadsKindsAndAddsThemUp) {
  const ScratchFolder folder;
  const auto catalog =
      ModelCatalog::Read(folder.Write("models.csv", Table("b2,10,1,2,3,4,9\na1,5,1.5,0,0,2,3\n")));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message;
  ASSERT_EQ(catalog.value().models().size(), 2U);
  EXPECT_EQ(catalog.value().models()[0].name, "a1");
  const auto found = catalog.value().Find("b2");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value()->params, 10);
  EXPECT_EQ(found.value()->depth_flops, 3);
  EXPECT_EQ(found.value()->flops, 10);
  EXPECT_TRUE(found.value()->kinds_known);
}

TEST(ModelCatalogTest, FlopsAloneWillDo) {
  const ScratchFolder folder;
  const auto catalog =
      ModelCatalog::Read(folder.Write("models.csv", "model,params,flops\na1,5,70\n"));
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog.value().models()[0].flops, 70);
  EXPECT_FALSE(catalog.value().models()[0].kinds_known);
}

TEST(ModelCatalogTest, EqualRowsAreOne) {
  const ScratchFolder folder;
  const auto catalog =
      ModelCatalog::Read(folder.Write("models.csv", Table("a1,5,1,0,0,2,3\na1,5,1,0,0,2,4\n")));
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog.value().models().size(), 1U);
}

TEST(ModelCatalogTest, TwinsAreRefused) {
  EXPECT_EQ(CatalogErrorOf(Table("a1,5,1,0,0,2,3\na1,6,1,0,0,2,3\n")),
            "models.csv:3: model 'a1' is also in line 2, with other numbers; expected one row for "
            "each model");
}

TEST(ModelCatalogTest, TwinsMayBeRefusedInUseOnly) {
  const ScratchFolder folder;
  const auto catalog = ModelCatalog::Read(
      folder.Write("models.csv", Table("a1,5,1,0,0,2,3\nb2,6,1,0,0,2,3\na1,5,1,0,0,3,3\n")),
      ModelCatalog::Twins::kRefusedInUse);
  ASSERT_TRUE(catalog.ok());
  EXPECT_TRUE(catalog.value().Find("b2").ok());
  const auto found = catalog.value().Find("a1");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("models.csv:4: model 'a1' is also in line 2"),
            std::string::npos);
}

TEST(ModelCatalogTest, UnknownModelsGetAHint) {
  const ScratchFolder folder;
  const auto catalog =
      ModelCatalog::Read(folder.Write("models.csv", Table("resnet18,5,1,0,0,2,3\n")));
  ASSERT_TRUE(catalog.ok());
  const auto found = catalog.value().Find("resnet19");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("did you mean 'resnet18'?"), std::string::npos);
}

TEST(ModelCatalogTest, BadTablesAreRefused) {
  EXPECT_EQ(CatalogErrorOf(Table("a1,-5,1,0,0,2,3\n")),
            "models.csv:2: column 'params' is '-5'; expected a number >= 0");
  EXPECT_EQ(CatalogErrorOf(Table(",5,1,0,0,2,3\n")),
            "models.csv:2: column 'model' is ''; expected the name of a model");
  EXPECT_EQ(CatalogErrorOf("model,params\n"),
            "models.csv:1: neither 'flops' nor 'C_flops' is a column; expected one of them");
}

}  // namespace
}  // namespace trainyard::loader
