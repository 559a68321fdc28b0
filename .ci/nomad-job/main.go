// Checks a Nomad job file against the types that Nomad's API gives a job: names of blocks and
// attributes, and types of literal values. Nomad publishes no schema, and its parser is not free
// software.
//
//	go run . FILE
package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad/api"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
)

var faults []string

func fault(at hcl.Range, text string, args ...any) {
	faults = append(faults, fmt.Sprintf("%s: %s", at, fmt.Sprintf(text, args...)))
}

// fields returns the type of each attribute and block of a struct, by its name in HCL.
func fields(of reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("hcl"), ",")
		if name != "" {
			found[name] = of.Field(i).Type
		}
	}
	return found
}

// element returns what pointers and lists are of.
func element(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return of
}

func checkBody(body *hclsyntax.Body, of reflect.Type) {
	if of.Kind() == reflect.Map {
		return // Whatever a task's driver takes.
	}
	allowed := fields(of)
	// Nomad reads these two in its own way.
	if of == reflect.TypeOf(api.Constraint{}) {
		allowed["distinct_hosts"] = reflect.TypeOf(true)
		allowed["distinct_property"] = reflect.TypeOf("")
	}
	for name, attribute := range body.Attributes {
		if want, is := allowed[name]; is {
			checkValue(attribute, want)
		} else {
			fault(attribute.NameRange, "%s has no attribute %q", of.Name(), name)
		}
	}
	for _, block := range body.Blocks {
		want, is := allowed[block.Type]
		if is && (element(want).Kind() == reflect.Struct || element(want).Kind() == reflect.Map) {
			checkBody(block.Body, element(want))
		} else {
			fault(block.TypeRange, "%s has no block %q", of.Name(), block.Type)
		}
	}
}

func checkValue(attribute *hclsyntax.Attribute, want reflect.Type) {
	if len(attribute.Expr.Variables()) > 0 {
		return // Known at run time.
	}
	value, problems := attribute.Expr.Value(nil)
	if problems.HasErrors() {
		fault(attribute.NameRange, "%v", problems)
		return
	}
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if want == reflect.TypeOf(time.Duration(0)) {
		if value.Type() != cty.String {
			fault(attribute.NameRange, "%s is no time", attribute.Name)
		} else if _, err := time.ParseDuration(value.AsString()); err != nil {
			fault(attribute.NameRange, "%v", err)
		}
		return
	}
	kind, err := gocty.ImpliedType(reflect.Zero(want).Interface())
	if err == nil {
		_, err = convert.Convert(value, kind)
	}
	if err != nil {
		fault(attribute.NameRange, "%s: %v", attribute.Name, err)
	}
}

func main() {
	file, problems := hclparse.NewParser().ParseHCLFile(os.Args[1])
	if problems.HasErrors() {
		fmt.Fprintln(os.Stderr, problems)
		os.Exit(1)
	}
	body := file.Body.(*hclsyntax.Body)
	for _, block := range body.Blocks {
		if block.Type != "job" || len(block.Labels) != 1 {
			fault(block.TypeRange, "no job")
		}
		checkBody(block.Body, reflect.TypeOf(api.Job{}))
	}
	for _, text := range faults {
		fmt.Fprintln(os.Stderr, text)
	}
	if len(body.Blocks) != 1 || len(faults) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%s: a job of Nomad's API\n", os.Args[1])
}
