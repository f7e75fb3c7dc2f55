package main

import (
	"context"
	"errors"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // the drivers of the stores below
	_ "gocloud.dev/blob/s3blob"

	"github.com/godwit-ps/godwit/checkpoint/bucket"
)

// Google's driver would make the program 26 MB larger; its buckets speak the protocol of S3, too.
func init() {
	bucket.Register("s3", abortUploads)
	bucket.Register("azblob", nil) // uploads that nobody completes end by themselves
}

// abortUploads ends uploads of checkpoints that nobody will complete, which S3 keeps, and charges for, until somebody does.
func abortUploads(ctx context.Context, b *blob.Bucket, name, prefix string, mine func(key string) bool) (n int, err error) {
	var client *s3.Client
	if !b.As(&client) {
		return 0, errors.New("this bucket is none of S3")
	}
	for in := (&s3.ListMultipartUploadsInput{Bucket: &name, Prefix: &prefix}); ; {
		page, err := client.ListMultipartUploads(ctx, in)
		if noUploads(err) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		for _, u := range page.Uploads {
			if u.Key == nil || !mine(*u.Key) {
				continue
			}
			_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &name, Key: u.Key, UploadId: u.UploadId})
			if err != nil {
				return n, err
			}
			n++
		}
		if page.IsTruncated == nil || !*page.IsTruncated {
			return n, nil
		}
		if reflect.DeepEqual(page.NextKeyMarker, in.KeyMarker) && reflect.DeepEqual(page.NextUploadIdMarker, in.UploadIdMarker) {
			return n, errors.New("the list of uploads says that there is more, and gives the same again: it may have no end")
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

// noUploads reports whether an error is what some servers say instead of an empty list.
func noUploads(err error) bool {
	var e interface{ ErrorCode() string }
	return errors.As(err, &e) && e.ErrorCode() == "NoSuchUpload"
}
