/* SPDX-License-Identifier: Apache-2.0 */
/* stages.h - the stages that pipeline.c puts in order */
#pragma once

#include "gateway/pipeline/request.h"

enum step stage_destination(struct request *req);
enum step stage_decide(struct request *req);
enum step stage_bind(struct request *req);
enum step stage_inject(struct request *req);
